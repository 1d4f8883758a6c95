import { Migration } from '@mikro-orm/migrations'

/**
 * Opens and clicks of emails. A visit is first written as it came, which is quick and durable. It is settled a moment
 * later, when it can be told whether a person or a machine made it; all counters change then.
 */
export class M012Visits extends Migration {
  override up(): void {
    this.addSql(`
      -- Visits that are not settled yet. A row is deleted when it is settled, so that the table stays as short as the
      -- backlog. No foreign keys: the ids come from a signed token, and a visit that refers to nothing is dropped when
      -- it is settled.
      create table pending_visit (
        organization_id uuid not null,
        id uuid not null,
        message_id uuid not null,
        -- The link that was followed, and its target; null for an open.
        position int,
        url text,
        -- The client itself says that it is a machine.
        machine boolean not null,
        user_agent text not null,
        -- The visit cannot be settled; it is set apart so that it holds up no other.
        apart boolean not null default false,
        created_at timestamptz(3) not null,
        primary key (organization_id, id)
      );
      create index on pending_visit (organization_id, message_id) where position is not null;

      -- Visits that may be settled: a click, once no other link of its email can have been followed within a second of
      -- it.
      create view due_visit as select * from pending_visit where not apart
        and (position is null or machine or created_at < now() - interval '1500 milliseconds');

      -- How often people and machines visited an email: OPEN, CLICK (any link), LINK (each link, by position),
      -- UNSUBSCRIBE. A visit is the first of its kind when there is no row yet, or none of its sort (people, machines)
      -- was counted.
      create table engagement (
        organization_id uuid not null,
        message_id uuid not null,
        kind text not null,
        position int not null default -1,
        campaign_id uuid,
        people int not null,
        machines int not null,
        primary key (organization_id, message_id, kind, position)
      ) with (fillfactor = 80);
      create index engagement_clicks on engagement (organization_id, campaign_id, message_id)
        where kind = 'CLICK' and campaign_id is not null;

      -- The same for a campaign, also without a foreign key: a visit to an email of a deleted campaign holds up no
      -- other. The process that settles an organization's visits writes here once for a batch, so that a row which many
      -- visits change is no bottleneck. Only UNSUBSCRIBE is written when somebody unsubscribes.
      create table campaign_engagement (
        organization_id uuid not null,
        campaign_id uuid not null,
        kind text not null,
        position int not null default -1,
        people int not null,
        machines int not null,
        -- Emails that people, or machines, visited at least once.
        emails_by_people int not null,
        emails_by_machines int not null,
        primary key (organization_id, campaign_id, kind, position)
      ) with (fillfactor = 50);

      -- Visits of people, by the hour.
      create table campaign_hour (
        organization_id uuid not null,
        campaign_id uuid not null,
        hour timestamptz(3) not null,
        opens int not null,
        clicks int not null,
        primary key (organization_id, campaign_id, hour)
      ) with (fillfactor = 50);
    `)
    this.addSql(SETTLE)
  }

  override down(): void {
    this.addSql(`
      drop function settle_visits;
      drop view due_visit;
      drop table campaign_hour, campaign_engagement, engagement, pending_visit;
    `)
  }
}

/**
 * Plans are cached and may be made when tables are empty, so every table is reached through a lookup of one row that
 * the planner cannot turn into a join over the whole table.
 */
const SETTLE = `
  -- Settles an organization's oldest visits: judges them, stores them, and updates every counter that they change.
  -- Returns how many it took, and one row for each first visit of a person, which becomes an event. A lock keeps others
  -- from settling the same organization meanwhile, so that what is read here stays true; whoever comes second takes
  -- nothing.
  --
  -- A click waits until no other link of its email can have been followed within a second of it. If a click on another
  -- link still comes later (a process could not reach the database in time), the earlier click is changed back: a
  -- machine made it.
  create function settle_visits(organization uuid, most int)
  returns table (taken int, message_id uuid, subscriber_id uuid, campaign_id uuid, automation_id uuid, run_id uuid,
    step_id text, "position" int, url text)
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off
  set enable_mergejoin = off as $fn$
  #variable_conflict use_column
  declare
    -- Chosen once for all statements: a visit that comes in between could be of an email that has no row yet.
    chosen uuid[];
  begin
    if not pg_try_advisory_xact_lock(hashtext('settle_visits'), hashtext(organization::text)) then
      return;
    end if;
    chosen := array(select p.id from due_visit p where p.organization_id = organization order by p.id limit most);
    if exists (select from campaign_batch b where b.organization_id = organization) then
      perform write_awaited(array[organization], awaited) from (select array(
          select distinct p.message_id from pending_visit p
          where p.organization_id = organization and p.id = any (chosen) and not exists (select from message m
            where m.organization_id = organization and m.id = p.message_id)
        ) as awaited) visited
      where awaited <> '{}';
    end if;
    return query with due as materialized (
      select p.* from pending_visit p where p.organization_id = organization and p.id = any (chosen)
    ), partitions as materialized (
      select id_floor(min(created_at) - interval '1 hour') as low, id_floor(max(created_at) + interval '1 hour') as high
      from due
    ), removed as (
      delete from pending_visit p using due where p.organization_id = due.organization_id and p.id = due.id
    ), known as materialized (
      -- Without visits that are stored already (a process did not learn that and wrote one again), and without emails
      -- that have no subscriber.
      select due.*, m.subscriber_id, m.campaign_id, m.automation_id, m.run_id, m.step_id, m.sent_at
      from due
      cross join lateral (select m.* from message m where m.organization_id = organization and m.id = due.message_id
        and m.class <> 'TEST' offset 0) m
      cross join lateral (select from subscriber s where s.organization_id = organization and s.id = m.subscriber_id
        offset 0) reader
      left join lateral (select t.id from tracking_event t where t.organization_id = organization and t.id = due.id
        offset 0) written on true
      where written.id is null
    ), judged as materialized (
      select known.*, other.people as others_people, not (machine or sent_at is null
          or created_at < sent_at + interval '2 seconds' or other.count > 0
          or known.position is not null and exists (select from pending_visit p
            where p.organization_id = organization and p.message_id = known.message_id
              and p.position <> known.position and p.created_at >= known.created_at - interval '1 second'
              and p.created_at <= known.created_at + interval '1 second')) as human
      from known
      cross join lateral (
        select count(*) as count, array_agg(t.id) filter (where t.human) as people from tracking_event t
        where known.position is not null and t.organization_id = organization and t.message_id = known.message_id
          and t.created_at >= known.created_at - interval '1 second'
          and t.created_at <= known.created_at + interval '1 second'
          and t.id >= (select low from partitions) and t.id < (select high from partitions)
          and t.kind = 'CLICK' and t.position <> known.position offset 0) other
    ), written as (
      insert into tracking_event (id, organization_id, message_id, kind, position, human, user_agent, created_at)
      select id, organization, message_id, case when position is null then 'OPEN' else 'CLICK' end, position, human,
        user_agent, created_at
      from judged
    ), turned as (
      update tracking_event t set human = false
      from (select distinct organization_id, unnest(others_people) as id from judged where others_people is not null) late
      where t.organization_id = late.organization_id and t.id = late.id
      returning t.id, t.message_id, t.position, t.created_at
    ), visit as materialized (
      select organization_id, message_id, subscriber_id, campaign_id, automation_id, run_id, step_id, each.kind,
        each.position, url, created_at, human::int as people, (not human)::int as machines
      from judged cross join lateral (values
        (case when judged.position is null then 'OPEN' else 'CLICK' end, -1), ('LINK', judged.position)
      ) as each (kind, position)
      where each.position is not null
      union all
      select organization, turned.message_id, m.subscriber_id, m.campaign_id, m.automation_id, m.run_id, m.step_id,
        each.kind, each.position, null, turned.created_at, -1, 1
      from turned
      cross join lateral (select m.* from message m where m.organization_id = organization
        and m.id = turned.message_id offset 0) m
      cross join lateral (values ('CLICK', -1), ('LINK', turned.position)) as each (kind, position)
    ), remaining as materialized (
      -- The last remaining click of each person whose click was changed back.
      select late.subscriber_id, (
        select max(t.created_at) from message m cross join lateral (select t.created_at from tracking_event t
          where t.organization_id = organization and t.message_id = m.id and t.kind = 'CLICK' and t.human
            and t.id <> all (array(select id from turned)) offset 0) t
        where m.organization_id = organization and m.subscriber_id = late.subscriber_id) as last_at
      from (select distinct subscriber_id from visit where people < 0) late
    ), summed as materialized (
      select organization_id, message_id, kind, position, subscriber_id, campaign_id, automation_id, run_id, step_id,
        max(url) as url, sum(people)::int as people, sum(machines)::int as machines,
        min(created_at) filter (where people > 0) as first_at, max(created_at) filter (where people > 0) as last_at
      from visit
      group by organization_id, message_id, kind, position, subscriber_id, campaign_id, automation_id, run_id, step_id
    ), moved as materialized (
      select summed.*,
        (before.people + summed.people > 0)::int - (before.people > 0)::int as by_people,
        (before.machines + summed.machines > 0)::int - (before.machines > 0)::int as by_machines
      from summed
      cross join lateral (select coalesce(sum(e.people), 0) as people, coalesce(sum(e.machines), 0) as machines
        from engagement e where e.organization_id = organization and e.message_id = summed.message_id
          and e.kind = summed.kind and e.position = summed.position offset 0) before
    ), of_email as (
      insert into engagement (organization_id, message_id, kind, position, campaign_id, people, machines)
      select organization, message_id, kind, position, campaign_id, people, machines from moved
      on conflict (organization_id, message_id, kind, position) do update
        set people = engagement.people + excluded.people, machines = engagement.machines + excluded.machines
    ), of_campaign as (
      insert into campaign_engagement (organization_id, campaign_id, kind, position, people, machines,
        emails_by_people, emails_by_machines)
      select organization, campaign_id, kind, position, sum(people), sum(machines), sum(by_people), sum(by_machines)
      from moved where campaign_id is not null group by campaign_id, kind, position
      on conflict (organization_id, campaign_id, kind, position) do update set
        people = campaign_engagement.people + excluded.people,
        machines = campaign_engagement.machines + excluded.machines,
        emails_by_people = campaign_engagement.emails_by_people + excluded.emails_by_people,
        emails_by_machines = campaign_engagement.emails_by_machines + excluded.emails_by_machines
    ), of_hour as (
      insert into campaign_hour (organization_id, campaign_id, hour, opens, clicks)
      select organization, campaign_id, date_trunc('hour', created_at, 'UTC'),
        coalesce(sum(people) filter (where kind = 'OPEN'), 0), coalesce(sum(people) filter (where kind = 'CLICK'), 0)
      from visit where campaign_id is not null and people <> 0 and kind <> 'LINK' group by 2, 3
      on conflict (organization_id, campaign_id, hour) do update
        set opens = campaign_hour.opens + excluded.opens, clicks = campaign_hour.clicks + excluded.clicks
    ), marked as (
      update message m set opened_at = coalesce(m.opened_at, change.opened_at),
        clicked_at = case when change.never_clicked then null else coalesce(m.clicked_at, change.clicked_at) end
      from (select organization_id, message_id, min(first_at) filter (where kind = 'OPEN') as opened_at,
          min(first_at) filter (where kind = 'CLICK') as clicked_at, bool_or(by_people < 0) as never_clicked
        from moved where kind <> 'LINK' and by_people <> 0 group by organization_id, message_id) change
      where m.organization_id = change.organization_id and m.id = change.message_id
    ), of_person as (
      insert into subscriber_stat as stat (organization_id, subscriber_id, open_count, click_count, last_opened_at,
        last_clicked_at)
      select organization, subscriber_id, coalesce(sum(by_people) filter (where kind = 'OPEN'), 0),
        coalesce(sum(by_people) filter (where kind = 'LINK'), 0), max(last_at) filter (where kind = 'OPEN'),
        max(last_at) filter (where kind = 'LINK')
      from moved where by_people <> 0 or last_at is not null or people < 0 group by subscriber_id order by subscriber_id
      on conflict (organization_id, subscriber_id) do update set
        open_count = stat.open_count + excluded.open_count,
        click_count = stat.click_count + excluded.click_count,
        last_opened_at = greatest(stat.last_opened_at, excluded.last_opened_at),
        last_clicked_at = greatest(excluded.last_clicked_at, case
          when exists (select from remaining where remaining.subscriber_id = excluded.subscriber_id)
            then (select last_at from remaining where remaining.subscriber_id = excluded.subscriber_id)
          else stat.last_clicked_at end)
    ), unsaid as (
      delete from subscriber_event e using moved
      where moved.kind = 'LINK' and moved.by_people < 0 and e.organization_id = moved.organization_id
        and e.subscriber_id = moved.subscriber_id and e.type = 'EMAIL_CLICKED'
        and e.data ->> 'emailId' = type_id('eml', moved.message_id)
        and (e.data ->> 'position')::int = moved.position
    ), noted as (
      -- The trigger on events notes the first visits; these are the others, for the same watches.
      insert into segment_change (organization_id, subscriber_id)
      select distinct organization, moved.subscriber_id from moved
      where by_people <= 0 and people <> 0
        and (exists (select from watched_segment watched where watched.organization_id = organization)
          or exists (select from run_wait wait where wait.organization_id = organization
            and wait.subscriber_id = moved.subscriber_id and wait.event_type = '')
          or exists (select from goal_watch goal where goal.organization_id = organization
            and goal.subscriber_id = moved.subscriber_id and goal.event_type = ''))
    )
    select (select count(*)::int from due), first.* from (values (1)) as always
    left join lateral (select message_id, subscriber_id, campaign_id, automation_id, run_id, step_id,
        nullif(position, -1), url
      from moved where kind <> 'CLICK' and by_people > 0 order by first_at, message_id) first on true;
  end $fn$;
`
