import { Migration } from '@mikro-orm/migrations'

/** The members of segments that a trigger watches, and the subscribers whose membership may have changed. */
export class M007Segments extends Migration {
  override up(): void {
    this.addSql(`
      -- The segments that a trigger of a published automation names; members are stored only for these.
      create table watched_segment (
        organization_id uuid not null,
        segment_id uuid not null,
        -- Once this transaction and all that ran beside it are over, all subscribers are compared once more.
        recheck_after text,
        recheck_at timestamptz(3),
        primary key (organization_id, segment_id),
        foreign key (organization_id, segment_id) references segment (organization_id, id) on delete cascade
      );

      -- Without foreign keys: a whole audience is written at once, and they would take six times as long. Triggers
      -- replace them.
      create table segment_member (
        organization_id uuid not null,
        segment_id uuid not null,
        subscriber_id uuid not null,
        primary key (organization_id, segment_id, subscriber_id)
      );
      create function forget_members_of_segments() returns trigger language plpgsql as $fn$
      begin
        delete from segment_member member using gone
          where member.organization_id = gone.organization_id and member.segment_id = gone.segment_id;
        return null;
      end $fn$;
      create trigger forget_members after delete on watched_segment referencing old table as gone
        for each statement execute function forget_members_of_segments();
      create function forget_deleted_members() returns trigger language plpgsql as $fn$
      begin
        delete from segment_member member using gone, watched_segment watched
          where watched.organization_id = gone.organization_id and member.organization_id = gone.organization_id
            and member.segment_id = watched.segment_id and member.subscriber_id = gone.id;
        return null;
      end $fn$;
      create trigger forget_members after delete on subscriber referencing old table as gone
        for each statement execute function forget_deleted_members();

      -- Subscribers to look at, one row for each change. One row for each subscriber would make writers wait for each
      -- other and for the reader, and a change that comes while its row is being read would be lost. No foreign keys,
      -- to keep writers fast.
      create table segment_change (
        id bigint generated always as identity primary key,
        organization_id uuid not null,
        subscriber_id uuid not null,
        silent boolean not null default false,
        -- For a change that a run made: how many runs came before it, each started by the one before.
        depth int
      );
      create index on segment_change (organization_id, id);

      -- Takes the oldest changes. A plan that was made for a small table would later read the whole table each time, so
      -- only the plan along the index is allowed.
      create function take_segment_changes(organization uuid, most int)
      returns table (subscriber_id uuid, silent boolean, depth int) language plpgsql
      set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off as $fn$
      begin
        return query delete from segment_change change where change.id = any(array(
            select oldest.id from segment_change oldest
            where oldest.organization_id = organization order by oldest.id limit most))
          returning change.subscriber_id, change.silent, change.depth;
      end $fn$;

      -- Returns how many runs came before a run, which is given by its TypeID; null when there is no such run.
      create function depth_of_run(organization uuid, run text) returns int language sql stable as $fn$
        select coalesce((trigger ->> 'depth')::int, 0) from automation_run
        where organization_id = organization and id = (
          select (lpad(to_hex(left(bits, 64)::bit(64)::bigint), 16, '0')
            || lpad(to_hex(right(bits, 64)::bit(64)::bigint), 16, '0'))::uuid
          from (select substr(string_agg((strpos('0123456789abcdefghjkmnpqrstvwxyz', letter) - 1)::bit(5)::text, ''
              order by place), 3) as bits
            from regexp_split_to_table(substr(run, 5), '') with ordinality as each (letter, place)) as decoded)
      $fn$;

      -- Every change of a subscriber writes an event, so no writer can forget to note it. The events of a segment
      -- itself are no reason to look again.
      create function note_events_for_segments() returns trigger language plpgsql as $fn$
      begin
        if exists (select from watched_segment) or exists (select from run_wait where event_type = '')
            or exists (select from goal_watch where event_type = '') then
          insert into segment_change (organization_id, subscriber_id, silent, depth)
          select made.organization_id, made.subscriber_id, bool_and(made.cause -> 'silent' is not null),
            max(coalesce(case when made.type in ('WORKFLOW_STARTED', 'WORKFLOW_COMPLETED', 'WORKFLOW_CANCELED', 'EMAIL_SENT',
              'EMAIL_DELIVERY_DELAYED', 'EMAIL_BOUNCED', 'WEBHOOK_EXECUTED')
              then depth_of_run(made.organization_id, made.data ->> 'runId') end, (made.cause ->> 'depth')::int))
          from made
          where made.type not in ('SEGMENT_ENTERED', 'SEGMENT_EXITED')
            and (exists (select from watched_segment watched where watched.organization_id = made.organization_id)
              or exists (select from run_wait wait where wait.organization_id = made.organization_id
                and wait.subscriber_id = made.subscriber_id and wait.event_type = '')
              or exists (select from goal_watch goal where goal.organization_id = made.organization_id
                and goal.subscriber_id = made.subscriber_id and goal.event_type = ''))
          group by 1, 2;
        end if;
        return null;
      end $fn$;
      create trigger note_for_segments after insert on subscriber_event referencing new table as made
        for each statement execute function note_events_for_segments();

      -- Notes the few changes without an event: a subscriber who is created without being subscribed, a run that queues
      -- in its group, waited there in vain or is retried.
      create function note_for_segments(organization uuid, subscribers uuid[], silently boolean, depth int) returns void
      language plpgsql as $fn$
      begin
        insert into segment_change (organization_id, subscriber_id, silent, depth)
        select organization, changed.id, silently, note_for_segments.depth from unnest(subscribers) as changed (id)
        where exists (select from watched_segment where organization_id = organization)
          or exists (select from run_wait wait where wait.organization_id = organization
            and wait.subscriber_id = changed.id and wait.event_type = '')
          or exists (select from goal_watch goal where goal.organization_id = organization
            and goal.subscriber_id = changed.id and goal.event_type = '');
      end $fn$;
    `)
  }

  override down(): void {
    this.addSql(`
      drop trigger note_for_segments on subscriber_event;
      drop trigger forget_members on subscriber;
      drop table segment_change, segment_member, watched_segment;
      drop function note_events_for_segments, depth_of_run, note_for_segments, take_segment_changes, forget_members_of_segments,
        forget_deleted_members;
    `)
  }
}
