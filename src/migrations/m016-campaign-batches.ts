import { Migration } from '@mikro-orm/migrations'

/**
 * The functions that delivery calls for recipients of campaigns: their emails get their rows with their outcome,
 * written once instead of written, queued, marked, updated and deleted from the queue again.
 */
export class M016CampaignBatches extends Migration {
  override up(): void {
    this.addSql(`
      -- Recipients of a send that a sender has claimed together: those of the audience after after_id and up to
      -- last_id. A caller that needs the row of such an email before its outcome has it written into the queue; a batch
      -- that has lost its sender goes there too. A caller that locks several batches does so by id, and before it locks
      -- anything of their emails.
      create table campaign_batch (
        organization_id uuid not null,
        id uuid not null,
        campaign_id uuid not null,
        send_id uuid not null,
        after_id uuid not null,
        last_id uuid not null,
        -- Recipients up to here may be with a relay.
        marked_to uuid not null default '00000000-0000-0000-0000-000000000000',
        -- Emails without a row; the batch is deleted with the last of them.
        unwritten int not null,
        -- Emails that were written into the queue.
        queued uuid[] not null default '{}',
        -- In no index, so that a tick of a batch writes no index.
        lease_until timestamptz(3) not null,
        primary key (organization_id, id)
        -- No foreign key to the send, which is not deleted: a tick updates a batch twice, and each update would check
        -- the key again, which locks the send against senders that claim from it.
      ) with (fillfactor = 50);
      create index on campaign_batch (organization_id, campaign_id);

      -- The subscribers of each batch, whether their email has its row by now or not.
      create view campaign_batch_member as
        select b.organization_id, b.id as batch_id, r.subscriber_id, r.message_id from campaign_batch b
        join campaign_recipient r on r.organization_id = b.organization_id and r.campaign_id = b.campaign_id
          and r.subscriber_id > b.after_id and r.subscriber_id <= b.last_id
        where r.reason is null;

      -- Writes emails of a batch that have no row yet into the queue, where their sender still holds them; all of them
      -- if emails is null. addresses may give the recipients by position. are_out: whether the emails may be with a
      -- relay; null lets marked_to decide. Returns how many emails were written.
      create function write_recipients(organization uuid, batch uuid, emails uuid[], addresses text[], are_out boolean)
      returns int
      language plpgsql
      set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_hashjoin = off
      set enable_mergejoin = off as $fn$
      #variable_conflict use_column
      declare
        taken campaign_batch;
        count int;
      begin
        select b.* into taken from campaign_batch b where b.organization_id = organization and b.id = batch for update;
        if not found then
          return 0;
        end if;
        with written as (
          insert into message (id, organization_id, class, marketing, subscriber_id, recipient, from_name, from_email,
            stood_in_for, reply_to, campaign_id, version_id)
          select member.message_id, organization, 'CAMPAIGN', true, member.subscriber_id, known.address,
            send.sender_name, send.sender_email, send.stood_in_for, send.reply_to, send.campaign_id, send.id
          from campaign_send send
          join campaign_batch_member member on member.organization_id = organization and member.batch_id = batch
            and (emails is null or member.message_id = any (emails))
          left join subscriber s on s.organization_id = organization and s.id = member.subscriber_id
          cross join lateral (
            select coalesce(addresses[array_position(emails, member.message_id)], s.email) as address) known
          -- An erased subscriber has no address any more; the erasure wrote the rows of their emails before.
          where send.organization_id = organization and send.id = taken.send_id and known.address is not null
          on conflict (organization_id, id) do nothing
          returning id, subscriber_id
        ), queued as (
          insert into delivery_queue (id, organization_id, lane, weight, campaign_id, state, submitting, attempt,
            lease_until)
          select id, organization, 'bulk', 0, taken.campaign_id, 'claimed',
            coalesce(are_out, subscriber_id <= taken.marked_to), 1, taken.lease_until
          from written
        )
        update campaign_batch b set unwritten = b.unwritten - ended.count, queued = b.queued || ended.ids
        from (select count(*)::int as count, array_agg(id) as ids from written) ended
        where b.organization_id = organization and b.id = batch
        returning ended.count into count;
        delete from campaign_batch b where b.organization_id = organization and b.id = batch and b.unwritten <= 0;
        return count;
      end $fn$;

      -- Writes claimed emails that somebody asks about before their outcome; returns whether there were any.
      create function write_awaited(organizations uuid[], emails uuid[]) returns boolean language sql as $fn$
        select coalesce(sum(write_recipients(organization_id, batch_id, awaited, null, null)), 0) > 0 from (
          select organization_id, batch_id, array_agg(message_id) as awaited from campaign_batch_member
          where organization_id = any (organizations) and message_id = any (emails)
          group by organization_id, batch_id order by batch_id) asked
      $fn$;

      -- Locks the batches of a tick before it records or marks anything: two ticks, each of which marks recipients of a
      -- batch that the other records, would deadlock.
      create function hold_batches(organizations uuid[], batches uuid[]) returns setof uuid
      language plpgsql
      set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off as $fn$
      begin
        perform from campaign_batch b where b.organization_id = any (organizations) and b.id = any (batches)
          order by b.id for update;
      end $fn$;

      -- Marks recipients of batches, in the statement that checks whether the emails still may be sent. An email with
      -- anything against it gets its row and is judged like every other. Returns those that are not marked. The caller
      -- holds the batches.
      create function mark_recipients(organizations uuid[], batches uuid[], emails uuid[], people uuid[],
        addresses text[], lease_seconds float8)
      returns table (id uuid, verdict text, run_id uuid)
      language plpgsql
      set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_hashjoin = off
      set enable_mergejoin = off as $fn$
      #variable_conflict use_column
      declare
        held campaign_batch[];
        going uuid[];
        clear uuid[];
        doubtful uuid[];
      begin
        select array_agg(b) into held from campaign_batch b
          where b.organization_id = any (organizations) and b.id = any (batches) and b.lease_until > now();
        going := array(select b.id from unnest(held) b
          join campaign c on c.organization_id = b.organization_id and c.id = b.campaign_id
          where c.status = 'SENDING' and not c.paused
            and not exists (select from sending_stop s where s.organization_id = b.organization_id));
        clear := array(select given.email from unnest(batches, emails, people, addresses)
            as given (batch, email, person, address)
          join unnest(held) b on b.id = given.batch and given.email <> all (b.queued)
          join subscriber s on s.organization_id = b.organization_id and s.id = given.person
          where given.batch = any (going) and consent_refusal(true, s.status, s.bounce_category) is null
            and not exists (select from suppression known where known.organization_id = b.organization_id
              and known.email_key = any (suppression_keys(b.organization_id, given.address))));
        if cardinality(clear) < cardinality(emails) then
          doubtful := array(select given.email from unnest(batches, emails) as given (batch, email)
            join unnest(held) b on b.id = given.batch and given.email <> all (b.queued)
            where given.email <> all (clear));
          perform write_recipients(given.organization_id, given.batch, array_agg(given.email),
            array_agg(given.address), false)
          from unnest(organizations, batches, emails, addresses) as given (organization_id, batch, email, address)
          where given.email = any (doubtful) group by given.organization_id, given.batch order by given.batch;
          return query select judged.id, judged.verdict, judged.run_id from mark_candidates(doubtful,
            array(select organizations[array_position(emails, email)] from unnest(doubtful) email),
            array_fill(1, array[cardinality(doubtful)]), null, lease_seconds) judged;
          return query select email, 'LOST', null::uuid from unnest(emails) email
            where email <> all (clear) and email <> all (doubtful);
        end if;
        update campaign_batch b set lease_until = clock_timestamp() + make_interval(secs => lease_seconds),
          marked_to = greatest(b.marked_to, marked.last)
        from (select given.batch, (array_agg(given.person order by given.person desc))[1] as last
          from unnest(batches, emails, people) as given (batch, email, person)
          where given.email = any (clear) group by given.batch) marked
        where b.organization_id = any (organizations) and b.id = marked.batch;
      end $fn$;

      -- Records acceptances of recipients of batches with their events: their emails are written in their final state.
      -- Returns those that are left, because they have a row already or an automation listens. The caller holds the
      -- batches.
      create function record_recipients(organizations uuid[], batches uuid[], emails uuid[], people uuid[],
        addresses text[], subjects text[], responses text[], facts jsonb[])
      returns setof uuid
      language plpgsql
      set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_hashjoin = off
      set enable_mergejoin = off as $fn$
      #variable_conflict use_column
      declare
        unheard uuid[] := unheard_acceptances(emails, organizations, people);
        written uuid[];
        ended record;
      begin
        with taken as materialized (
          select b.id as batch, send.* from campaign_batch b
          join campaign_send send on send.organization_id = b.organization_id and send.id = b.send_id
          where b.organization_id = any (organizations) and b.id = any (batches)
        ), sent as (
          insert into message (id, organization_id, class, marketing, status, subscriber_id, recipient, from_name,
            from_email, stood_in_for, reply_to, subject, campaign_id, version_id, attempts, response, sent_at)
          select given.email, taken.organization_id, 'CAMPAIGN', true, 'SENT', given.person, given.address,
            taken.sender_name, taken.sender_email, taken.stood_in_for, taken.reply_to, given.subject,
            taken.campaign_id, taken.id, 1, given.response, now()
          from unnest(batches, emails, people, addresses, subjects, responses)
            as given (batch, email, person, address, subject, response)
          join taken on taken.batch = given.batch
          where given.email = any (unheard)
          on conflict (organization_id, id) do nothing
          returning id, organization_id, subscriber_id
        ), counted as (
          insert into subscriber_stat (organization_id, subscriber_id, email_count)
          select organization_id, subscriber_id, count(*) from sent group by 1, 2 order by 1, 2
          on conflict (organization_id, subscriber_id) do update
            set email_count = subscriber_stat.email_count + excluded.email_count
        ), noted as (
          insert into subscriber_event (id, organization_id, subscriber_id, type, data, cause)
          select new_id(), organization_id, subscriber_id, 'EMAIL_SENT', facts[array_position(emails, sent.id)],
            '{"kind": "system", "id": "delivery", "name": "Delivery"}'
          from sent
        ), told as (
          insert into outcome_batch (organization_id, kind, messages)
          select organization_id, 'SENT', array_agg(id) from sent group by 1
        )
        select coalesce(array_agg(id), '{}') into written from sent;
        for ended in
          select b.organization_id, b.campaign_id, b.id, done.count from (select given.batch, count(*)::int as count
            from unnest(batches, emails) as given (batch, email) where given.email = any (written) group by 1) done
          join campaign_batch b on b.organization_id = any (organizations) and b.id = done.batch
          order by 1, 2, 3
        loop
          perform tally_emails(ended.organization_id, ended.campaign_id, 'SENT', '', date_trunc('hour', now(), 'UTC'),
            ended.count, 0, 0);
          update campaign_batch b set unwritten = b.unwritten - ended.count
            where b.organization_id = ended.organization_id and b.id = ended.id;
          delete from campaign_batch b
            where b.organization_id = ended.organization_id and b.id = ended.id and b.unwritten <= 0;
        end loop;
        return query select email from unnest(emails) email where email <> all (written);
      end $fn$;

      -- Moves batches that have lost their sender into the queue; returns how many emails that were. A batch that
      -- cannot be written stays, its send is set aside with the reason, and no other is held up.
      create function revive_batches() returns int language plpgsql as $fn$
      declare
        lost record;
        emails int := 0;
      begin
        for lost in
          select organization_id, id, send_id from campaign_batch where lease_until < now()
          order by id for update skip locked
        loop
          begin
            emails := emails + write_recipients(lost.organization_id, lost.id, null, null, null);
            delete from campaign_batch b where b.organization_id = lost.organization_id and b.id = lost.id;
          exception
            when lock_not_available or transaction_rollback then null;
            when others then
              update campaign_send s set fault = 'database error ' || sqlstate
              where s.organization_id = lost.organization_id and s.id = lost.send_id;
          end;
        end loop;
        return emails;
      end $fn$;
    `)
  }

  override down(): void {
    this.addSql(`
      drop function revive_batches, record_recipients, mark_recipients, hold_batches, write_awaited, write_recipients;
      drop view campaign_batch_member;
      drop table campaign_batch;
    `)
  }
}
