import { Migration } from '@mikro-orm/migrations'

/** Sending: domains, senders, campaigns, messages, the delivery queue, links, tracking, decisions. */
export class M003Sending extends Migration {
  override up(): void {
    this.addSql(`
      create table domain (
        id uuid not null,
        organization_id uuid not null references organization,
        domain text not null,
        status text not null default 'PENDING' check (status in ('PENDING', 'VERIFYING', 'VERIFIED', 'DEGRADED', 'FAILED')),
        development boolean not null default false,
        region text not null default 'local',
        records jsonb not null default '[]',
        fallback_priority int,
        verification_requested_at timestamptz(3),
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, domain)
      );
      create unique index domain_verified_once on domain (domain) where status = 'VERIFIED' and not development;
      create trigger touch before update on domain for each row execute function touch_updated_at();

      create table sender (
        id uuid not null,
        organization_id uuid not null references organization,
        domain_id uuid not null,
        name text not null,
        email text not null,
        email_key text not null generated always as (lower(email)) stored,
        reply_to text,
        is_default boolean not null default false,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, email_key),
        foreign key (organization_id, domain_id) references domain (organization_id, id)
      );
      create unique index sender_default on sender (organization_id) where is_default;

      create table snippet (
        id uuid not null,
        organization_id uuid not null references organization,
        name text not null,
        content jsonb not null,
        content_type text not null default 'MAILY' check (content_type in ('MAILY', 'MARKDOWN')),
        archived_at timestamptz(3),
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        primary key (organization_id, id)
      );
      create trigger touch before update on snippet for each row execute function touch_updated_at();

      create table image (
        id uuid not null,
        organization_id uuid not null references organization,
        name text,
        description text,
        content_type text not null,
        width int not null,
        height int not null,
        size int not null,
        content_hash bytea not null,
        capture_page_id text,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, content_hash)
      );

      create table campaign (
        id uuid not null,
        organization_id uuid not null references organization,
        kind text not null check (kind in ('BROADCAST', 'WORKFLOW')),
        automation_id uuid,
        step_id text,
        name text not null default 'Untitled',
        subject text not null default '',
        preview text,
        content jsonb,
        content_type text not null default 'MAILY' check (content_type in ('MAILY', 'PLATE', 'MARKDOWN')),
        sender_id uuid,
        reply_to text,
        recipient_filters jsonb not null default '[]',
        status text not null default 'DRAFT'
          check (status in ('DRAFT', 'SCHEDULED', 'SENDING', 'SENT', 'ARCHIVED', 'FAILED')),
        -- When the campaign is due, and the time zone in which that was requested. Each schedule has a number, which
        -- its send shares.
        send_at timestamptz(3),
        timezone text,
        schedule_version int not null default 0,
        -- While SENDING: emails that are not sent yet wait.
        paused boolean not null default false,
        -- Why the campaign is FAILED.
        failure text,
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        foreign key (organization_id, sender_id) references sender (organization_id, id) on delete set null (sender_id)
      );
      create index on campaign (organization_id, kind, status, id);
      create index on campaign (organization_id, automation_id) where automation_id is not null;
      create trigger touch before update on campaign for each row execute function touch_updated_at();

      create table campaign_history (
        id uuid not null,
        organization_id uuid not null,
        campaign_id uuid not null,
        source text not null check (source in ('autosave', 'manual', 'ai')),
        subject text not null,
        preview text,
        content jsonb,
        content_type text not null,
        -- The entry whose content was restored.
        restored_from uuid,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        foreign key (organization_id, campaign_id) references campaign (organization_id, id) on delete cascade,
        foreign key (organization_id, restored_from) references campaign_history (organization_id, id)
          on delete set null (restored_from)
      );
      create index on campaign_history (organization_id, campaign_id, id);
      -- For the foreign key: each entry that is deleted is looked for in it.
      create index on campaign_history (organization_id, restored_from) where restored_from is not null;

      -- Closed sets of values. They are domains in the tables that every email passes, because a session caches a
      -- domain but reads the check constraints of a table again for each statement, which took a third of an
      -- acceptance.
      create domain message_class as text check (value in ('TRANSACTIONAL', 'AUTOMATION', 'CAMPAIGN', 'TEST'));
      create domain message_status as text check (value in ('QUEUED', 'SUBMITTING', 'SENT', 'DELIVERED', 'DELAYED',
        'BOUNCED', 'COMPLAINED', 'FAILED', 'SKIPPED'));
      -- Returns whether the outcome of an email is still unknown.
      create function is_pending(status message_status) returns boolean language sql immutable parallel safe
        as $fn$ select status in ('QUEUED', 'SUBMITTING', 'DELAYED') $fn$;
      create domain delivery_lane as text check (value in ('transactional', 'bulk'));
      create domain delivery_state as text
        check (value in ('queued', 'claimed', 'deferred', 'held', 'apart'));

      -- The record of every email, one row each; delivery_queue holds what waits to be sent.
      create table message (
        id uuid not null,
        organization_id uuid not null,
        class message_class not null,
        marketing boolean not null,
        status message_status not null default 'QUEUED',
        subscriber_id uuid,
        recipient text not null,
        from_name text,
        from_email text not null,
        -- The address that it should be from, when another domain stands in.
        stood_in_for text,
        reply_to text,
        subject text,
        tracking boolean not null default true,
        campaign_id uuid,
        automation_id uuid,
        version_id uuid,
        run_id uuid,
        step_id text,
        visit int,
        attempts int not null default 0,
        reason text,
        response text,
        bounce_category text,
        -- Sent again, because a sender was lost before it could record whether it had sent the email.
        resent boolean not null default false,
        created_at timestamptz(3) not null default now(),
        sent_at timestamptz(3),
        delivered_at timestamptz(3),
        opened_at timestamptz(3),
        clicked_at timestamptz(3),
        failed_at timestamptz(3),
        primary key (organization_id, id)
      ) partition by range (id);
      -- Only two kinds of email have no subscriber. The condition keeps a plan that was made for an empty table from
      -- looking up ids in this index.
      create index on message (organization_id, subscriber_id, id) where subscriber_id is not null;
      -- For the erasure of a person who got email of those two kinds.
      create index on message (organization_id, lower(recipient)) where subscriber_id is null;
      create index on message (organization_id, campaign_id, id) where campaign_id is not null;
      create index on message (organization_id, run_id, id) where run_id is not null;
      -- For the list of transactional email, which would be hard to find among the emails of campaigns.
      create index on message (organization_id, id) where class = 'TRANSACTIONAL';

      -- The source of an email that belongs to no campaign: {subject, content, contentType, preview}.
      create table message_content (
        organization_id uuid not null,
        message_id uuid not null,
        source jsonb not null,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, message_id)
      );

      -- Ensures exactly one message for each key, even after a crash. Outlives the partitions of message.
      create table message_key (
        organization_id uuid not null references organization,
        key text not null,
        message_id uuid not null,
        primary key (organization_id, key)
      );

      -- Emails that wait to be sent. A row is deleted with its outcome, so that the table stays as narrow and short as
      -- the backlog.
      create table delivery_queue (
        id uuid primary key,
        organization_id uuid not null,
        lane delivery_lane not null,
        -- How the classes of one organization's email share its turn: weight 1 gets three parts, weight 0 gets one.
        weight smallint not null default 0,
        -- The campaign, for an email to its recipients.
        campaign_id uuid,
        state delivery_state not null default 'queued',
        -- A claimed email that is marked: it may be handed to a relay at any moment. In no index, so that marking,
        -- which happens to every email, writes no index.
        submitting boolean not null default false,
        -- attempt counts claims and is their fencing token: a sender with another number has lost the row. tries counts
        -- conversations with a relay.
        attempt int not null default 0,
        tries smallint not null default 0,
        lease_until timestamptz(3),
        next_attempt_at timestamptz(3) not null default now(),
        -- When a relay first answered about the email, moved later by the time that it then waited for us. From that
        -- moment it is retried for a day.
        first_tried_at timestamptz(3),
        -- The paused automation or campaign, or the stopped domain, that a held email waits for.
        held_by uuid,
        -- A sender was lost between DATA and its outcome, so the email may have been sent already.
        ambiguous boolean not null default false,
        created_at timestamptz(3) not null default now()
      ) with (fillfactor = 70);
      create index on delivery_queue (lane, organization_id, weight, id) where state = 'queued';
      create index on delivery_queue (next_attempt_at) where state = 'deferred';
      create index on delivery_queue (organization_id, held_by) where state = 'held';
      create index on delivery_queue (id) where state = 'claimed';
      -- For the emails of a campaign that have no outcome yet.
      create index on delivery_queue (organization_id, campaign_id, state) where campaign_id is not null;

      -- Accepts one transactional email: checks the token, takes the idempotency key if there is one, checks sender,
      -- recipient and suppression, writes the rows and stores the answer; with judged_only it only checks. Returns
      -- null, or what is wrong. A function of small statements, because a session caches their plans: planning them for
      -- each email would cost more than running them.
      create function accept_transactional(organization uuid, token uuid, message uuid, newcomer uuid, from_domain text,
        from_name text, from_email text, recipient_address text, reply_address text, tracked boolean, content jsonb,
        judged_only boolean, is_full boolean, called text, asked bytea, named text, answered jsonb)
      returns jsonb language plpgsql as $fn$
      #variable_conflict use_variable
      declare
        chosen record;
        known record;
        plain_key text := lower(recipient_address);
        hashed_key text;
        suppressed_for text;
        kept jsonb;
        leaving record;
        stood_in_for text;
        over_quota jsonb;
      begin
        perform from api_token t where t.organization_id = organization and t.id = token and t.revoked_at is null
          and (t.expires_at is null or t.expires_at > now()) and 'emails' = any (t.permissions);
        if token is not null and not found then
          return '{"isTokenGone": true}';
        end if;
        if called is not null then
          kept := take_key(organization, called, asked);
          if kept is not null then
            return jsonb_build_object('kept', kept);
          end if;
        end if;
        if is_full then
          return '{"isFull": true}';
        end if;

        if from_domain is null then
          select snd.name, snd.email, snd.reply_to, d.status, stop.reason as stopped_for into chosen from sender snd
            join domain d on d.organization_id = snd.organization_id and d.id = snd.domain_id
            left join sending_stop stop on stop.organization_id = d.organization_id and stop.domain_id = d.id
              and stop.stream = 'TRANSACTIONAL'
            where snd.organization_id = organization and snd.is_default;
        else
          select from_name as name, from_email as email, null as reply_to, d.status, stop.reason as stopped_for
            into chosen from domain d
            left join sending_stop stop on stop.organization_id = d.organization_id and stop.domain_id = d.id
              and stop.stream = 'TRANSACTIONAL'
            where d.organization_id = organization and d.domain = from_domain;
        end if;
        if chosen.status <> 'VERIFIED' then
          select l.email, l.stood_in_for into leaving from leave_from(organization, chosen.email, chosen.status) l;
          if found then
            stood_in_for := leaving.stood_in_for;
            chosen.email := leaving.email;
            chosen.reply_to := coalesce(chosen.reply_to, stood_in_for);
            chosen.status := 'VERIFIED';
            chosen.stopped_for := null;
          end if;
        end if;
        -- The lock is held until the email is written, so that it and an erasure of the subscriber wait for each other.
        select s.id, s.status, s.bounce_category into known from subscriber s
          where s.organization_id = organization and s.email_key = plain_key for key share;
        -- The hash is computed before the query, which would compute it for each suppression while these are so few
        -- that it reads them all.
        hashed_key := erased_email_key(organization, recipient_address);
        suppressed_for := coalesce(
          (select b.reason from suppression b where b.organization_id = organization and b.email_key = plain_key),
          (select b.reason from suppression b where b.organization_id = organization and b.email_key = hashed_key));
        if chosen.status is distinct from 'VERIFIED' or chosen.stopped_for is not null or suppressed_for is not null
          or consent_refusal(false, known.status, known.bounce_category) is not null then
          return jsonb_build_object('domainStatus', chosen.status, 'stoppedFor', chosen.stopped_for,
            'recipientStatus', known.status, 'bounceCategory', known.bounce_category, 'suppression', suppressed_for);
        end if;
        over_quota := case when judged_only then refuse_emails(organization) else take_emails(organization, 1) end;
        if over_quota is not null then
          return jsonb_build_object('overQuota', over_quota);
        end if;
        if judged_only then
          return null;
        end if;

        if known.id is null then
          insert into subscriber (id, organization_id, email, status)
            values (newcomer, organization, recipient_address, 'TRANSACTIONAL')
            on conflict (organization_id, email_key) do update set email = subscriber.email
            returning subscriber.id into known;
          -- No event is recorded for a subscriber who only gets transactional email; see the migration of segments.
          if exists (select from watched_segment watched where watched.organization_id = organization) then
            insert into segment_change (organization_id, subscriber_id) values (organization, known.id);
          end if;
        end if;
        insert into message (id, organization_id, class, marketing, subscriber_id, recipient, from_name, from_email,
            stood_in_for, reply_to, tracking)
          values (message, organization, 'TRANSACTIONAL', false, known.id, recipient_address, chosen.name, chosen.email,
            stood_in_for, coalesce(reply_address, chosen.reply_to), tracked);
        insert into message_content (organization_id, message_id, source) values (organization, message, content);
        insert into delivery_queue (id, organization_id, lane, weight)
          values (message, organization, 'transactional', 1);
        if called is not null then
          perform keep_answer(organization, called, asked, named, answered);
        end if;
        return null;
      end $fn$;

      -- Accepts many emails of one token, in the order of their recipients, so that callers cannot deadlock. Returns
      -- the places, from 1, of those that are refused, and why. With patience, waiting for a lock ends after that time,
      -- and the whole call fails (55P03).
      create function accept_transactionals(organization uuid, token uuid, emails jsonb, patience text)
      returns table (place int, verdict jsonb) language plpgsql as $fn$
      #variable_conflict use_column
      begin
        if patience is not null then
          perform set_config('lock_timeout', patience, true);
        end if;
        return query select ordered.place::int, judged.verdict
          from (
            select * from rows from (jsonb_to_recordset(emails) as (id uuid, newcomer uuid, "fromDomain" text,
              "fromName" text, "fromEmail" text, "to" text, "replyTo" text, tracking boolean, source jsonb,
              "isFull" boolean, key text, hash text, operation text, answer jsonb)) with ordinality
              as email (id, newcomer, "fromDomain", "fromName", "fromEmail", "to", "replyTo", tracking, source, "isFull",
                key, hash, operation, answer, place)
            order by lower("to"), place offset 0
          ) as ordered,
          lateral (select accept_transactional(organization, token, ordered.id, newcomer, "fromDomain", "fromName",
            "fromEmail", "to", "replyTo", tracking, source, false, "isFull", key, decode(hash, 'hex'), operation,
            answer) as verdict offset 0) as judged
          where judged.verdict is not null;
      end $fn$;

      -- The next free slot of each lane; senders take their slots from here.
      create table lane_bucket (
        lane text primary key,
        next_slot_at timestamptz not null default now()
      );
      insert into lane_bucket (lane) values ('transactional'), ('bulk');

      -- The targets of an email's links by position, frozen when it is composed. Targets that all recipients of a
      -- campaign share are stored with its send; link_target reads both.
      create table link (
        organization_id uuid not null,
        message_id uuid not null,
        targets text[] not null,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, message_id)
      );

      -- Settled visits, each by a person or a machine.
      create table tracking_event (
        id uuid not null,
        organization_id uuid not null,
        message_id uuid not null,
        kind text not null check (kind in ('OPEN', 'CLICK')),
        position int,
        human boolean not null,
        user_agent text,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id)
      ) partition by range (id);
      create index on tracking_event (organization_id, message_id, created_at);

      -- Every decision not to act, with its reason, written when it is made.
      create table decision (
        id uuid not null,
        organization_id uuid not null,
        subscriber_id uuid,
        automation_id uuid,
        campaign_id uuid,
        run_id uuid,
        step_id text,
        message_id uuid,
        action text not null,
        reason text not null,
        data jsonb not null default '{}',
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id)
      ) partition by range (id);
      create index on decision (organization_id, subscriber_id, id);

      -- Creates the monthly partitions of the tables that grow with time: this month, the next two, and a default one.
      -- Rows of a month whose partition did not exist yet, because the service was off for long or a clock was ahead,
      -- are in the default one; they move to the new partition, which could not be attached beside them.
      -- Waits only a second for other transactions, because all writers wait behind it meanwhile; the worker tries again.
      create function ensure_partitions() returns void language plpgsql set lock_timeout = '1s' as $fn$
      declare
        parent text;
        rest text;
        month timestamptz;
        child text;
        first_id uuid;
        end_id uuid;
      begin
        perform pg_advisory_xact_lock(hashtext('ensure_partitions'));
        foreach parent in array array['subscriber_event', 'message', 'tracking_event', 'decision'] loop
          rest := parent || '_rest';
          if to_regclass(rest) is null then
            execute format('create table %I partition of %I default', rest, parent);
          end if;
          for step in 0..2 loop
            month := (date_trunc('month', now() at time zone 'utc') + make_interval(months => step)) at time zone 'utc';
            child := parent || to_char(month at time zone 'utc', '_YYYY_MM');
            if to_regclass(child) is null then
              first_id := id_floor(month);
              end_id := id_floor(((month at time zone 'utc') + interval '1 month') at time zone 'utc');
              -- Writers wait at the parent. One that waited at the default partition would fail once its row belongs
              -- to the new one.
              execute format('lock table only %I in access exclusive mode', parent);
              execute format('create table %I (like %I including all)', child, parent);
              execute format('with moved as (delete from %I where id >= $1 and id < $2 returning *)
                insert into %I select * from moved', rest, child) using first_id, end_id;
              execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, child,
                first_id, end_id);
              -- Emails in one page are sent together, so each needs room there for its second version; then no index is
              -- written.
              if parent = 'message' then
                execute format('alter table %I set (fillfactor = 50)', child);
              end if;
            end if;
          end loop;
        end loop;
      end $fn$;
      select ensure_partitions();
    `)
  }

  override down(): void {
    this.addSql(`
      drop function ensure_partitions, accept_transactionals, accept_transactional;
      drop table decision, tracking_event, link, lane_bucket, delivery_queue, message_key, message_content, message,
        campaign_history, campaign, image, snippet, sender, domain;
      drop function is_pending;
      drop domain delivery_state, delivery_lane, message_status, message_class;
    `)
  }
}
