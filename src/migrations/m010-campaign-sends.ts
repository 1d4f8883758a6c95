import { Migration } from '@mikro-orm/migrations'

/** The sends of campaigns: their content, their audience and their progress. */
export class M010CampaignSends extends Migration {
  override up(): void {
    this.addSql(`
      -- One row for each send: the campaign as it was when it was due, which is what every recipient gets.
      create table campaign_send (
        id uuid not null,
        organization_id uuid not null,
        campaign_id uuid not null,
        -- The number of the schedule that it comes from.
        number int not null,
        subject text not null,
        preview text,
        content jsonb not null,
        content_type text not null,
        -- The targets of its links by position; null when they differ between recipients.
        targets text[] not null default '{}',
        sender_name text not null,
        sender_email text not null,
        -- The address of its sender, when another domain stands in.
        stood_in_for text,
        reply_to text,
        recipient_filters jsonb not null,
        -- Whether campaign_recipient holds the whole audience.
        audience_frozen boolean not null default false,
        total int not null default 0,
        -- Recipients up to here have been claimed; advances in the transaction that puts them into a batch.
        enqueued_to uuid not null default '00000000-0000-0000-0000-000000000000',
        enqueued int not null default 0,
        -- Recipients that get no email at all.
        skipped int not null default 0,
        started_at timestamptz(3) not null default now(),
        finished_at timestamptz(3),
        -- When its workflow last worked on it.
        seen_at timestamptz(3) not null default now(),
        -- Why its next emails could not be written; its workflow fails with this reason and tries again.
        fault text,
        primary key (organization_id, id),
        unique (organization_id, campaign_id, number),
        foreign key (organization_id, campaign_id) references campaign (organization_id, id) on delete cascade
      ) with (fillfactor = 70);

      -- Sends that have ended although recipients are left.
      create index campaign_send_left on campaign_send (seen_at)
        where finished_at is not null and enqueued + skipped < total;
      -- Sends whose recipients still wait for their email.
      create index campaign_send_underway on campaign_send (organization_id, id)
        where audience_frozen and finished_at is null and fault is null and enqueued + skipped < total;

      -- The frozen audience. The id of the email is given here, so that nobody can get two emails, whatever crashes. No
      -- foreign key: a million rows are written at once, and rows that refer to nothing do no harm.
      create table campaign_recipient (
        organization_id uuid not null,
        campaign_id uuid not null,
        subscriber_id uuid not null,
        message_id uuid not null,
        -- Why the recipient gets no email.
        reason text,
        primary key (organization_id, campaign_id, subscriber_id)
      );

      -- The outcomes of a campaign in numbers: totals of message and of campaign_recipient. They are right at any
      -- moment, because every statement that changes those tables changes them too. Backends write to slots of their
      -- own, so that none waits for another; readers add the slots up.
      create table campaign_tally (
        organization_id uuid not null,
        campaign_id uuid not null,
        slot smallint not null,
        status message_status not null,
        -- Why emails were skipped, failed or bounced; '' for all others.
        reason text not null,
        -- The hour in which emails were sent; -infinity for those that were not.
        sent_hour timestamptz(3) not null,
        emails int not null,
        delivered int not null,
        resent int not null,
        -- For the sending rate: the latest ten-second window in which emails came here, how many came in it, and how
        -- many in the window before.
        window_at timestamptz(3) not null,
        in_window int not null,
        before_window int not null,
        primary key (organization_id, campaign_id, slot, status, reason, sent_hour)
      ) with (fillfactor = 50);

      -- Adds emails of a campaign to an outcome; negative numbers take them away again.
      create function tally_emails(organization uuid, campaign uuid, came_to message_status, why text, hour timestamptz,
        changed int, arrived int, repeated int) returns void
      language sql as $fn$
        insert into campaign_tally as tally (organization_id, campaign_id, slot, status, reason, sent_hour, emails,
          delivered, resent, window_at, in_window, before_window)
        values (organization, campaign, pg_backend_pid() % 64, came_to, why, hour, changed, arrived, repeated,
          date_bin('10 seconds', clock_timestamp(), 'epoch'), greatest(changed, 0), 0)
        on conflict (organization_id, campaign_id, slot, status, reason, sent_hour) do update set
          emails = tally.emails + excluded.emails, delivered = tally.delivered + excluded.delivered,
          resent = tally.resent + excluded.resent, window_at = excluded.window_at,
          in_window = excluded.in_window + case when tally.window_at = excluded.window_at then tally.in_window else 0 end,
          before_window = case tally.window_at when excluded.window_at then tally.before_window
            when excluded.window_at - interval '10 seconds' then tally.in_window else 0 end
      $fn$;

      -- Subtracts what the old rows counted and adds what the new rows count.
      create function tally_messages() returns trigger language plpgsql as $fn$
      begin
        -- Emails outside campaigns mostly change one at a time, and this check costs a fifth of the rest.
        if not exists (select from new_rows where campaign_id is not null) then
          return null;
        end if;
        perform tally_emails(organization_id, campaign_id, status, reason, hour, emails, delivered, resent) from (
          select organization_id, campaign_id, status,
            case status when 'BOUNCED' then coalesce(bounce_category, 'UNKNOWN')
              when 'SKIPPED' then coalesce(reason, 'UNKNOWN') when 'FAILED' then coalesce(reason, 'UNKNOWN') else '' end as reason,
            coalesce(date_trunc('hour', sent_at, 'UTC'), '-infinity') as hour, sum(sign)::int as emails,
            sum(case when delivered_at is not null then sign else 0 end)::int as delivered,
            sum(case when resent then sign else 0 end)::int as resent
          from (
            select -1 as sign, organization_id, campaign_id, class, status, reason, bounce_category, sent_at, delivered_at,
              resent from old_rows
            union all
            select 1, organization_id, campaign_id, class, status, reason, bounce_category, sent_at, delivered_at,
              resent from new_rows) changed
          where campaign_id is not null and class <> 'TEST' and not is_pending(status)
          group by 1, 2, 3, 4, 5
          having sum(sign) <> 0 or sum(case when delivered_at is not null then sign else 0 end) <> 0
            or sum(case when resent then sign else 0 end) <> 0
          order by 1, 2, 3, 4, 5) moved;
        return null;
      end $fn$;
      create trigger tally after update on message referencing old table as old_rows new table as new_rows
        for each statement execute function tally_messages();

      -- Counts recipients that get no email like emails that are skipped.
      create function tally_skipped(organization uuid, campaign uuid, why text, changed int) returns void
      language sql as $fn$
        insert into campaign_tally as tally (organization_id, campaign_id, slot, status, reason, sent_hour, emails,
          delivered, resent, window_at, in_window, before_window)
        values (organization, campaign, pg_backend_pid() % 64, 'SKIPPED', why, '-infinity', changed, 0, 0, '-infinity', 0, 0)
        on conflict (organization_id, campaign_id, slot, status, reason, sent_hour)
          do update set emails = tally.emails + excluded.emails
      $fn$;
      create function tally_recipients() returns trigger language plpgsql as $fn$
      begin
        if tg_op = 'INSERT' then
          perform tally_skipped(organization_id, campaign_id, reason, count(*)::int) from new_rows
            where reason is not null group by organization_id, campaign_id, reason
            order by organization_id, campaign_id, reason;
        else
          perform tally_skipped(organization_id, campaign_id, reason, sum(sign)::int) from (
              select -1 as sign, organization_id, campaign_id, reason from old_rows where reason is not null
              union all select 1, organization_id, campaign_id, reason from new_rows where reason is not null) changed
            group by organization_id, campaign_id, reason having sum(sign) <> 0
            order by organization_id, campaign_id, reason;
        end if;
        return null;
      end $fn$;
      create trigger tally_inserted after insert on campaign_recipient referencing new table as new_rows
        for each statement execute function tally_recipients();
      create trigger tally_changed after update on campaign_recipient
        referencing old table as old_rows new table as new_rows
        for each statement execute function tally_recipients();

      -- Claims the next recipients of a send as a batch: their emails get a row with their outcome. See the migration
      -- of batches.
      create function claim_recipients(organization uuid, send uuid, want int, lease_seconds float8)
      returns setof claimed_mail
      language plpgsql
      set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_hashjoin = off
      set enable_mergejoin = off as $fn$
      #variable_conflict use_column
      declare
        frozen campaign_send;
        is_there boolean;
        reached uuid;
        batch uuid;
      begin
        -- An erasure holds this lock: a sender would read the address of the person until it is over.
        if not pg_try_advisory_xact_lock_shared(7305106, hashtext(organization::text)) then
          return;
        end if;
        -- A sender that waits here goes on where the other one ended. It waits only briefly, because others wait behind
        -- it.
        perform set_config('lock_timeout', '100ms', true);
        select s.* into frozen from campaign_send s
        where s.organization_id = organization and s.id = send and s.audience_frozen and s.finished_at is null
          and s.fault is null and s.enqueued + s.skipped < s.total
        for update;
        is_there := found;
        perform set_config('lock_timeout', '0', true);
        if not is_there or not exists (select from campaign c where c.organization_id = organization
          and c.id = frozen.campaign_id and c.status = 'SENDING' and not c.paused and c.schedule_version = frozen.number)
          or stopped_by(organization, true, frozen.sender_email) is not null
          -- A send with a lost batch claims no more, because its emails may be impossible to write.
          or exists (select from campaign_batch b where b.organization_id = organization
            and b.campaign_id = frozen.campaign_id and b.lease_until < now())
        then
          return;
        end if;
        reached := frozen.enqueued_to;
        loop
          batch := new_id();
          return query with page as materialized (
            select r.subscriber_id, r.message_id, s.email, s.name, s.phone, s.fields from campaign_recipient r
            left join subscriber s on s.organization_id = r.organization_id and s.id = r.subscriber_id
            where r.organization_id = organization and r.campaign_id = frozen.campaign_id and r.reason is null
              and r.subscriber_id > reached
            order by r.subscriber_id limit want
          ), counted as materialized (
            select count(email)::int as emails, count(*)::int - count(email)::int as others,
              (array_agg(subscriber_id order by subscriber_id desc))[1] as last_id
            from page
          ), batched as (
            insert into campaign_batch (organization_id, id, campaign_id, send_id, after_id, last_id, unwritten, lease_until)
            select organization, batch, frozen.campaign_id, frozen.id, reached, last_id, emails,
              clock_timestamp() + make_interval(secs => lease_seconds)
            from counted where emails > 0
          ), gone as materialized (
            select subscriber_id from page where email is null
          ), skipped as (
            update campaign_recipient r set reason = 'SUBSCRIBER_DELETED'
            where r.organization_id = organization and r.campaign_id = frozen.campaign_id
              and r.subscriber_id = any (array(select subscriber_id from gone))
          ), noted as (
            insert into decision (id, organization_id, subscriber_id, campaign_id, action, reason)
            select new_id(), organization, subscriber_id, frozen.campaign_id, 'SEND_EMAIL', 'SUBSCRIBER_DELETED'
            from gone
          ), advanced as (
            update campaign_send set enqueued = enqueued + counted.emails, skipped = skipped + counted.others,
              enqueued_to = coalesce(counted.last_id, enqueued_to)
            from counted
            where organization_id = organization and id = frozen.id
          )
          select message_id, organization, o.name, 'CAMPAIGN', true, page.email, frozen.sender_name,
            frozen.sender_email, frozen.reply_to, true, subscriber_id, page.name, page.phone, coalesce(fields, '{}'),
            frozen.campaign_id, null::uuid, frozen.id, null::uuid, null::text, null::jsonb, 1, 0::smallint, batch, null::uuid
          from page cross join organization o where o.id = organization and page.email is not null
          order by subscriber_id;
          -- If all subscribers on the page are deleted, go on with the next page.
          exit when found;
          select s.* into frozen from campaign_send s where s.organization_id = organization and s.id = send;
          exit when frozen.enqueued + frozen.skipped >= frozen.total;
          if frozen.enqueued_to = reached then
            raise 'the audience has % recipients fewer than were counted',
              frozen.total - frozen.enqueued - frozen.skipped;
          end if;
          reached := frozen.enqueued_to;
        end loop;
      end $fn$;

      -- Shares the emails that a lane claims among the organizations that send campaigns, and within each among its
      -- sends, in the order they began. A send whose emails cannot be written is set aside with the reason and holds up
      -- no other.
      create function claim_campaign_mails(want int, lease_seconds float8, most_organizations int)
      returns setof claimed_mail
      language plpgsql
      set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off as $fn$
      declare
        -- Chosen at random, so that all have a turn when there are more than most_organizations. Then ordered, because
        -- a send is locked until the end of the statement, and two senders that lock in different orders would
        -- deadlock.
        organizations uuid[] := array(
          select o.id from (select u.organization_id as id from (select distinct s.organization_id from campaign_send s
              join campaign c on c.organization_id = s.organization_id and c.id = s.campaign_id and c.status = 'SENDING'
                and not c.paused and c.schedule_version = s.number
              where s.audience_frozen and s.finished_at is null and s.fault is null and s.enqueued + s.skipped < s.total
                and stopped_by(s.organization_id, true, s.sender_email) is null) u
            order by random() limit most_organizations) o
          order by o.id);
        organization uuid;
        send uuid;
        room int;
        taken int;
      begin
        foreach organization in array organizations loop
          room := greatest(1, want / cardinality(organizations));
          for send in
            select s.id from campaign_send s
            where s.organization_id = organization and s.audience_frozen and s.finished_at is null and s.fault is null
              and s.enqueued + s.skipped < s.total
            order by s.id
          loop
            begin
              return query select * from claim_recipients(organization, send, room, lease_seconds);
              get diagnostics taken = row_count;
              room := room - taken;
            exception
              -- Another transaction holds the send; it is claimed later.
              when lock_not_available or transaction_rollback then null;
              when others then
              update campaign_send s set fault = 'database error ' || sqlstate
              where s.organization_id = organization and s.id = send;
            end;
            exit when room <= 0;
          end loop;
        end loop;
      end $fn$;

      -- Returns the target of an email's link at a position, or null. Always one row, but declared as a set: only such
      -- a function is inlined into the calling query, at a third of the cost.
      create function link_target(organization uuid, message uuid, place int) returns setof text
      language sql stable parallel safe as $fn$
        select coalesce(
          (select link.targets[place + 1] from link where link.organization_id = organization and link.message_id = message),
          (select send.targets[place + 1] from message m join campaign_send send
            on send.organization_id = m.organization_id and send.id = m.version_id
            where m.organization_id = organization and m.id = message and m.class = 'CAMPAIGN'))
      $fn$;

      -- Campaigns that are due later or are being sent.
      create index campaign_underway on campaign (send_at) where status in ('SCHEDULED', 'SENDING');
    `)
  }

  override down(): void {
    this.addSql(`
      drop index campaign_underway;
      drop trigger tally on message;
      drop trigger tally_inserted on campaign_recipient;
      drop trigger tally_changed on campaign_recipient;
      drop function claim_campaign_mails, claim_recipients, tally_messages, tally_emails, tally_recipients,
        tally_skipped, link_target;
      drop table campaign_tally, campaign_recipient, campaign_send;
    `)
  }
}
