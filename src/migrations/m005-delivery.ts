import { Migration } from '@mikro-orm/migrations'

/**
 * The functions that delivery calls for every handful of emails. They are functions because a session caches their
 * plans: planning these statements costs many times what running them does. A cached plan outlives the moment it was
 * made for, when the queue may have been empty, so only plans that use indexes are allowed. `offset 0` keeps the
 * planner from reading all emails of an organization where it should look one up.
 */
export class M005Delivery extends Migration {
  override up(): void {
    this.addSql(`
      -- Records how conversations ended; the caller records the events in the same transaction. A fifth soft bounce
      -- within two weeks suppresses the address.
      create function record_outcomes(outcomes jsonb)
      returns table (id uuid, organization_id uuid, verdict text, subscriber_id uuid, run_id uuid, data jsonb)
      language plpgsql
      set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_hashjoin = off
      set enable_mergejoin = off as $fn$
      #variable_conflict use_column
      begin
        return query with given as materialized (
          select given.*, q.ambiguous as was_ambiguous, q.tries + 1 as tries,
            given.kind in ('sent', 'hard', 'failed')
              or given.kind = 'soft' and coalesce(q.first_tried_at < q.next_attempt_at - interval '24 hours', false) as final
          from jsonb_to_recordset(outcomes) as given (id uuid, "organizationId" uuid, attempt int, kind text,
            subject text, response text, reason text, category text, "delayMs" int, ambiguous boolean,
            "subscriberId" uuid, data jsonb)
          join delivery_queue q on q.id = given.id
            and ((q.attempt = given.attempt and q.submitting) or given.kind = 'sent')
          for update of q
        ), removed as (
          delete from delivery_queue q using given where q.id = given.id and given.final
        ), deferred as (
          update delivery_queue q set state = 'deferred', submitting = false, lease_until = null,
            tries = case when given.kind = 'soft' then given.tries else q.tries end,
            -- Moved later by the time that was lost on our side since the email was due (waiting for a rate or an
            -- unreachable relay), which does not count towards its day.
            first_tried_at = case when given.kind = 'soft' then coalesce(q.first_tried_at + (now() - q.next_attempt_at), now())
              else q.first_tried_at + (now() - q.next_attempt_at) + make_interval(secs => given."delayMs"::float8 / 1000) end,
            ambiguous = q.ambiguous or given.ambiguous,
            next_attempt_at = now() + make_interval(secs => given."delayMs"::float8 / 1000)
          from given where q.id = given.id and not given.final
        ), finished as (
          update message m set
            status = case
              when given.kind = 'sent' then 'SENT'
              when not given.final then case when given.kind = 'soft' then 'DELAYED' else m.status end
              when given.category is not null then 'BOUNCED'
              else 'FAILED' end,
            sent_at = case when given.kind = 'sent' then now() else m.sent_at end,
            failed_at = case when given.final and given.kind <> 'sent' then now() else m.failed_at end,
            subject = coalesce(given.subject, m.subject),
            response = coalesce(given.response, m.response),
            reason = case when given.kind = 'sent' then null else coalesce(given.reason, m.reason) end,
            bounce_category = case when given.kind = 'sent' then null else given.category end,
            attempts = given.tries,
            resent = m.resent or given.was_ambiguous
          from given, message before
          where before.organization_id = given."organizationId" and before.id = given.id
            and m.organization_id = given."organizationId" and m.id = given.id
            and is_pending(before.status)
          returning m.id, m.organization_id, m.status, m.subscriber_id, m.run_id, m.recipient, m.bounce_category, m.class,
            m.automation_id, m.campaign_id, m.step_id, m.reason, m.attempts,
            before.status as status_before, given.kind, given.final, given.data
        ), decided as (
          -- Giving an email up for good is recorded as a decision, like never sending it.
          insert into decision (id, organization_id, subscriber_id, automation_id, campaign_id, run_id, step_id,
            message_id, action, reason, data)
          select new_id(), f.organization_id, f.subscriber_id, f.automation_id, f.campaign_id, f.run_id, f.step_id, f.id,
            'SEND_EMAIL', case when f.kind in ('hard', 'failed') then coalesce(f.reason, 'UNKNOWN') else 'RETRIES_OVER' end,
            jsonb_build_object('attempts', f.attempts, 'reason', f.reason)
          from finished f where f.final and f.kind <> 'sent'
        ), settled as materialized (
          select f.id, f.organization_id as "organizationId", f.subscriber_id as "subscriberId", f.run_id as "runId",
            case when f.kind = 'back' and not f.final then 'BACK'
              when f.status = 'DELAYED' and f.status_before = 'DELAYED' then 'BACK' else f.status end as verdict,
            f.data, f.recipient, f.bounce_category, f.class
          from finished f
        ), counted as (
          insert into subscriber_stat (organization_id, subscriber_id, email_count)
          select settled."organizationId", s.id, count(*) from settled
            join subscriber s on s.organization_id = settled."organizationId" and s.id = settled."subscriberId"
          where verdict = 'SENT' and class <> 'TEST' group by 1, 2 order by 1, 2
          on conflict (organization_id, subscriber_id) do update
            set email_count = subscriber_stat.email_count + excluded.email_count
        ), hard as materialized (
          select distinct "organizationId", "subscriberId", lower(recipient) as email_key, bounce_category from settled
          where verdict = 'BOUNCED' and bounce_category in ('NO_SUCH_USER', 'INTERNAL')
        ), weary as materialized (
          select distinct "organizationId", lower(recipient) as email_key from settled
          where verdict = 'BOUNCED' and bounce_category not in ('NO_SUCH_USER', 'INTERNAL') and (
            select count(*) from message m where m.organization_id = settled."organizationId"
              and m.subscriber_id = settled."subscriberId" and m.status = 'BOUNCED' and m.id > id_floor(now() - interval '14 days')
              and lower(m.recipient) = lower(settled.recipient)
          ) >= 4
        ), suppressed as (
          insert into suppression (id, organization_id, email_key, reason, source)
          select new_id(), "organizationId", email_key, reason, 'delivery' from (
            select "organizationId", email_key, 'HARD_BOUNCE' as reason from hard
            union select "organizationId", email_key, 'SOFT_BOUNCE' from weary) blocked
          on conflict (organization_id, email_key) do nothing
        ), bounced as (
          update subscriber s set status = 'BOUNCED', bounce_category = hard.bounce_category
          from hard where s.organization_id = hard."organizationId" and s.id = hard."subscriberId"
            and s.email_key = hard.email_key and s.status not in ('BANNED', 'COMPLAINED')
        )
        select id, "organizationId", verdict, "subscriberId", "runId", data from settled;
      end $fn$;

      -- Returns the acceptances that no automation listens for.
      create function unheard_acceptances(ids uuid[], organizations uuid[], people uuid[]) returns uuid[]
      language plpgsql stable as $fn$
      declare
        listening uuid[] := array(select o.id from (select distinct id from unnest(organizations) id) o
          where exists (select from automation_trigger t
            where t.organization_id = o.id and t.type = 'EVENT' and t.match_key = 'EMAIL_SENT'));
      begin
        return array(select given.id from unnest(ids, organizations, people)
            as given (id, organization_id, subscriber_id)
          where given.organization_id <> all (listening)
            and not exists (select from run_wait w where w.organization_id = given.organization_id
              and w.subscriber_id = given.subscriber_id and w.event_type = 'EMAIL_SENT')
            and not exists (select from goal_watch w where w.organization_id = given.organization_id
              and w.subscriber_id = given.subscriber_id and w.event_type = 'EMAIL_SENT'));
      end $fn$;

      -- Records acceptances and their events. Returns those that are left, because their row is gone or an automation
      -- listens.
      create function record_sent(ids uuid[], organizations uuid[], people uuid[], subjects text[], responses text[],
        facts jsonb[])
      returns setof uuid
      language plpgsql
      set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_hashjoin = off
      set enable_mergejoin = off as $fn$
      #variable_conflict use_column
      declare
        plain uuid[] := unheard_acceptances(ids, organizations, people);
        removed uuid[];
        tries_of int[];
        ambiguous_of boolean[];
        -- Bounds that are known before the statement begins keep it from opening the other partitions.
        first_id uuid;
        last_id uuid;
      begin
        with removed as (
          delete from delivery_queue q where q.id = any (plain) returning q.id, q.tries + 1 as tries, q.ambiguous
        )
        select array_agg(id order by id), array_agg(tries order by id), array_agg(ambiguous order by id)
        into removed, tries_of, ambiguous_of from removed;
        first_id := removed[1];
        last_id := removed[cardinality(removed)];
        -- As in claim_mails, rows are found by an array and not by a join, and their values by the position in it.
        with finished as materialized (
          update message m set status = 'SENT', sent_at = now(),
            subject = coalesce(subjects[array_position(ids, m.id)], m.subject),
            response = coalesce(responses[array_position(ids, m.id)], m.response), reason = null,
            bounce_category = null, attempts = tries_of[array_position(removed, m.id)],
            resent = m.resent or ambiguous_of[array_position(removed, m.id)]
          where m.organization_id = any (organizations) and m.id = any (removed)
            and m.id between first_id and last_id and is_pending(m.status)
          returning m.organization_id, m.subscriber_id, m.class, facts[array_position(ids, m.id)] as data
        ), counted as (
          insert into subscriber_stat (organization_id, subscriber_id, email_count)
          select s.organization_id, s.id, count(*) from finished
            join subscriber s on s.organization_id = finished.organization_id and s.id = finished.subscriber_id
          where class <> 'TEST' group by 1, 2 order by 1, 2
          on conflict (organization_id, subscriber_id) do update
            set email_count = subscriber_stat.email_count + excluded.email_count
        )
        insert into subscriber_event (id, organization_id, subscriber_id, type, data, cause)
        select new_id(), organization_id, subscriber_id, 'EMAIL_SENT', data,
          '{"kind": "system", "id": "delivery", "name": "Delivery"}'
        from finished where subscriber_id is not null and class <> 'TEST';
        return query select id from unnest(ids) id where id <> all (coalesce(removed, '{}'));
      end $fn$;

      -- Returns why a subscriber of this status gets no such email, or null; simulations use it too.
      create function consent_refusal(marketing boolean, status text, bounce_category text) returns text
      language sql immutable parallel safe as $fn$
        select case
          when marketing and status <> 'SUBSCRIBED' then status
          when status in ('BANNED', 'COMPLAINED') then status
          when status = 'BOUNCED' and bounce_category in ('NO_SUCH_USER', 'INTERNAL') then status
        end
      $fn$;

      -- Marks the emails to send next, in the statement that checks whether they still may be sent. Returns those not
      -- marked.
      create type withheld_mail as (id uuid, organization_id uuid, verdict text, refusal text, holder uuid,
        subscriber_id uuid, run_id uuid, automation_id uuid, campaign_id uuid, step_id text);
      create function mark_candidates(ids uuid[], organizations uuid[], attempts int[], links jsonb,
        lease_seconds float8)
      returns table (id uuid, organization_id uuid, verdict text, subscriber_id uuid, run_id uuid)
      language plpgsql
      set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_hashjoin = off
      set enable_mergejoin = off as $fn$
      #variable_conflict use_column
      declare
        -- Bounds that are known before the statement begins keep it from opening the other partitions.
        first_id uuid := (select id from unnest(ids) id order by id limit 1);
        last_id uuid := (select id from unnest(ids) id order by id desc limit 1);
        -- Rarely true. While it is false, the domain of each email is not looked up. See the migration of
        -- deliverability.
        is_stopped boolean := exists (select from sending_stop s where s.organization_id = any (organizations));
        withheld withheld_mail[];
        marked uuid[];
      begin
        if first_id is null then
          return;
        end if;
        with checked as materialized (
          select m.id, m.organization_id, m.subscriber_id, m.run_id, m.automation_id, m.campaign_id, m.step_id,
            case when a.status = 'PAUSED' then a.id when c.paused then c.id
              when is_stopped and m.class <> 'TEST' then stopped_by(m.organization_id, m.marketing, m.from_email)
            end as holder,
            case
              when not is_pending(m.status) then m.status
              when exists (select from suppression b where b.organization_id = m.organization_id
                and b.email_key = any(suppression_keys(m.organization_id, m.recipient))) then 'SUPPRESSED'
              when m.class = 'TEST' then null
              when s.id is null then 'SUBSCRIBER_DELETED'
              when consent_refusal(m.marketing, s.status, s.bounce_category) is not null
                then consent_refusal(m.marketing, s.status, s.bounce_category)
              when m.automation_id is not null and coalesce(a.status, 'ARCHIVED') = 'ARCHIVED' then 'ARCHIVED'
              when m.run_id is not null and (r.id is null or r.status not in ('QUEUED', 'ACTIVE', 'WAITING'))
                then coalesce(r.exit_reason, 'RUN_ENDED')
              when m.class = 'CAMPAIGN' and m.campaign_id is not null and c.status is distinct from 'SENDING' then 'CAMPAIGN_ENDED'
            end as refusal
          from message m
          left join subscriber s on s.organization_id = m.organization_id and s.id = m.subscriber_id
          left join automation a on a.organization_id = m.organization_id and a.id = m.automation_id
          left join automation_run r on r.organization_id = m.organization_id and r.id = m.run_id
          left join campaign c on c.organization_id = m.organization_id and c.id = m.campaign_id
            and m.class = 'CAMPAIGN'
          where m.organization_id = any (organizations) and m.id = any (ids) and m.id between first_id and last_id
        ), judged as materialized (
          select checked.*, case when refusal is not null then 'SKIPPED' when holder is not null then 'HELD' end as verdict
          from checked
        ), submitting as (
          update delivery_queue q set submitting = true,
            lease_until = clock_timestamp() + make_interval(secs => lease_seconds)
          where q.id = any (array(select id from judged where verdict is null)) and q.state = 'claimed'
            and q.attempt = attempts[array_position(ids, q.id)] and not q.submitting and q.lease_until > now()
          returning q.id
        )
        select (select array_agg(id) from submitting),
          (select array_agg(row(judged.id, judged.organization_id, verdict, refusal, holder, subscriber_id, run_id,
            automation_id, campaign_id, step_id)::withheld_mail) from judged where verdict is not null)
        into marked, withheld;

        if links is not null then
          insert into link (organization_id, message_id, targets)
          select own."organizationId", own.id, own.targets from jsonb_to_recordset(links)
            as own ("organizationId" uuid, id uuid, targets text[])
          where own.id = any (marked)
          -- A retry is composed anew, from what is known of its recipient by then.
          on conflict (organization_id, message_id) do update set targets = excluded.targets;
        end if;
        if cardinality(marked) = cardinality(ids) then
          return;
        end if;
        return query with mine as materialized (
          select judged.* from unnest(withheld) judged join delivery_queue q on q.id = judged.id
            and q.state = 'claimed' and q.attempt = attempts[array_position(ids, q.id)] and not q.submitting
            and q.lease_until > now()
          for update of q
        ), held as (
          update delivery_queue q set state = 'held', held_by = mine.holder, lease_until = null
          from mine where q.id = mine.id and mine.verdict = 'HELD'
        ), dropped as (
          delete from delivery_queue q using mine where q.id = mine.id and mine.verdict = 'SKIPPED'
        ), skipped as (
          update message m set status = 'SKIPPED', reason = mine.refusal, failed_at = now()
          from mine where m.organization_id = mine.organization_id and m.id = mine.id and mine.verdict = 'SKIPPED'
            and m.id between first_id and last_id and is_pending(m.status)
          returning m.id
        ), decided as (
          -- EMAIL_DEFERRED: not now, but once the automation, campaign or domain that holds the email goes on.
          insert into decision (id, organization_id, subscriber_id, automation_id, campaign_id, run_id, step_id, message_id,
            action, reason)
          select new_id(), mine.organization_id, mine.subscriber_id, mine.automation_id, mine.campaign_id,
            mine.run_id, mine.step_id, mine.id, case when mine.verdict = 'HELD' then 'EMAIL_DEFERRED' else 'SEND_EMAIL' end,
            coalesce(mine.refusal, case mine.holder when mine.automation_id then 'PAUSED'
              when mine.campaign_id then 'CAMPAIGN_PAUSED' else 'SENDING_STOPPED' end)
          from mine left join skipped on skipped.id = mine.id
          where mine.verdict = 'HELD' or skipped.id is not null
        )
        select candidate.id, candidate.organization_id, coalesce(mine.verdict, 'LOST'), mine.subscriber_id, mine.run_id
        from unnest(ids, organizations) as candidate (id, organization_id) left join mine on mine.id = candidate.id
        where candidate.id <> all (coalesce(marked, '{}'));
      end $fn$;

      -- Claims email of a lane and returns it with all that rendering needs; see claimMails.
      create type claim as (id uuid, organization_id uuid, attempt int, tries smallint);
      create type claimed_mail as (id uuid, "organizationId" uuid, "organizationName" text, class text,
        marketing boolean, recipient text, "fromName" text, "fromEmail" text, "replyTo" text, tracking boolean,
        "subscriberId" uuid, "subscriberName" text, phone text, fields jsonb, "campaignId" uuid, "automationId" uuid,
        "versionId" uuid, "runId" uuid, "stepId" text, source jsonb, attempt int, tries smallint,
        -- Only for a recipient of a campaign whose email has no row yet.
        "batchId" uuid, "lastOrganization" uuid);
      create function claim_mails(of_lane text, want int, lease_seconds float8, after_organization uuid, most_classes int)
      returns setof claimed_mail
      language plpgsql
      set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_hashjoin = off
      set enable_mergejoin = off as $fn$
      #variable_conflict use_column
      declare
        mails claim[];
        last_organization uuid;
        first_id uuid;
        last_id uuid;
      begin
        with recursive part_of as (
          (select q.organization_id, q.weight from delivery_queue q where q.lane = of_lane and q.state = 'queued'
            and q.organization_id > coalesce(after_organization, '00000000-0000-0000-0000-000000000000')
            order by q.organization_id, q.weight limit 1)
          union all
          select following.organization_id, following.weight from part_of cross join lateral (
            select q.organization_id, q.weight from delivery_queue q where q.lane = of_lane and q.state = 'queued'
              and (q.organization_id, q.weight) > (part_of.organization_id, part_of.weight)
            order by q.organization_id, q.weight limit 1) following
        ), turn as materialized (
          select organization_id, weight from part_of limit most_classes
        ), picked as materialized (
          -- Ordered by weight, although it is fixed, because only the index of queued emails has this order. Ordered by
          -- id alone, a plan that was made for a short queue would walk the primary key past all claimed and dead rows.
          select part.id from turn cross join lateral (
            select q.id from delivery_queue q where q.lane = of_lane and q.state = 'queued'
              and q.organization_id = turn.organization_id and q.weight between turn.weight and turn.weight
            order by q.weight, q.id
            limit greatest(1, want * case when turn.weight > 0 then 3 else 1 end
              / (select sum(case when each.weight > 0 then 3 else 1 end) from turn each))
            for update skip locked) part
        ), claimed as materialized (
          update delivery_queue q set state = 'claimed', submitting = false, attempt = q.attempt + 1,
            lease_until = clock_timestamp() + make_interval(secs => lease_seconds)
          -- As an array and not as a join: a plan made for an empty queue would compare every row with every id.
          where q.id = any (array(select id from picked))
          returning q.id, q.organization_id, q.attempt, q.tries
        )
        select array_agg(row(id, organization_id, attempt, tries)::claim order by id),
          (select organization_id from turn order by organization_id desc limit 1)
        into mails, last_organization from claimed;
        if mails is null then
          return;
        end if;
        first_id := mails[1].id;
        last_id := mails[cardinality(mails)].id;
        return query select m.id, m.organization_id, o.name, m.class::text, m.marketing, m.recipient, m.from_name,
          m.from_email, m.reply_to, m.tracking, m.subscriber_id, s.name, s.phone, coalesce(s.fields, '{}'),
          m.campaign_id, m.automation_id, m.version_id, m.run_id, m.step_id, content.source, claimed.attempt,
          claimed.tries, null::uuid, last_organization
        from unnest(mails) claimed cross join lateral (select * from message m
          where m.organization_id = claimed.organization_id and m.id = claimed.id
            and m.id between first_id and last_id offset 0) m
        join organization o on o.id = m.organization_id
        left join subscriber s on s.organization_id = m.organization_id and s.id = m.subscriber_id
        left join message_content content on content.organization_id = m.organization_id
          and content.message_id = m.id;
      end $fn$;
    `)
  }

  override down(): void {
    this.addSql(`
      drop function claim_mails, mark_candidates, consent_refusal, record_sent, unheard_acceptances, record_outcomes;
      drop type claimed_mail, claim, withheld_mail;
    `)
  }
}
