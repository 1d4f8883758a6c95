import { Migration } from '@mikro-orm/migrations'

/** Subscribers and their counters, tags, custom fields, segments, events and suppressions. */
export class M002Audience extends Migration {
  override up(): void {
    this.addSql(`
      create table subscriber (
        id uuid not null,
        organization_id uuid not null references organization,
        email text not null,
        email_key text not null generated always as (lower(email)) stored,
        name text,
        phone text,
        status text not null check (status in ('PENDING_CONFIRMATION', 'SUBSCRIBED', 'UNSUBSCRIBED', 'BOUNCED',
          'BANNED', 'COMPLAINED', 'TRANSACTIONAL')),
        country text,
        ip_address text,
        fields jsonb not null default '{}',
        bounce_category text,
        -- Double opt-in: when the subscriber was last asked by email, and when they confirmed.
        confirmation_requested_at timestamptz(3),
        confirmed_at timestamptz(3),
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, email_key)
      );
      create index on subscriber (organization_id, status, id);
      -- No pending list: flushing it made some inserts many times slower than the others.
      create index subscriber_fields on subscriber using gin (organization_id, fields jsonb_path_ops)
        with (fastupdate = off);
      -- A short pending list: a subscriber has dozens of trigrams, and adding them to the index one by one cost an
      -- import five times as much as the rest of its rows. Half a megabyte of them is flushed within milliseconds.
      create index subscriber_search on subscriber using gin (organization_id, email_key gin_trgm_ops, name gin_trgm_ops)
        with (fastupdate = on, gin_pending_list_limit = 512);
      create trigger touch before update on subscriber for each row execute function touch_updated_at();

      -- Counters that change with every email. Narrow and without secondary indexes, so that updates stay in their
      -- page.
      create table subscriber_stat (
        organization_id uuid not null,
        subscriber_id uuid not null,
        revenue numeric(18, 2) not null default 0,
        email_count int not null default 0,
        open_count int not null default 0,
        click_count int not null default 0,
        last_opened_at timestamptz(3),
        last_clicked_at timestamptz(3),
        primary key (organization_id, subscriber_id),
        foreign key (organization_id, subscriber_id) references subscriber (organization_id, id) on delete cascade
      ) with (fillfactor = 70);

      create table tag (
        id uuid not null,
        organization_id uuid not null references organization,
        name text not null,
        name_key text not null generated always as (lower(name)) stored,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, name_key)
      );

      create table subscriber_tag (
        organization_id uuid not null,
        subscriber_id uuid not null,
        tag_id uuid not null,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, subscriber_id, tag_id),
        foreign key (organization_id, subscriber_id) references subscriber (organization_id, id) on delete cascade,
        foreign key (organization_id, tag_id) references tag (organization_id, id) on delete cascade
      );
      create index on subscriber_tag (organization_id, tag_id, subscriber_id);

      create table custom_field (
        id uuid not null,
        organization_id uuid not null references organization,
        name text not null,
        type text not null check (type in ('string', 'number', 'boolean', 'date')),
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, name)
      );

      create table segment (
        id uuid not null,
        organization_id uuid not null references organization,
        name text not null,
        filters jsonb not null default '[]',
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        primary key (organization_id, id)
      );
      create trigger touch before update on segment for each row execute function touch_updated_at();

      -- Everything that happened to a subscriber. Partitioned by time through its id; see ensure_partitions().
      create table subscriber_event (
        id uuid not null,
        organization_id uuid not null,
        subscriber_id uuid not null,
        type text not null,
        data jsonb not null default '{}',
        cause jsonb not null default '{}',
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id)
      ) partition by range (id);
      create index on subscriber_event (organization_id, subscriber_id, type, id);
      create index on subscriber_event (organization_id, type, id);

      -- Addresses that get no email, whatever their subscriber's status. Of erased people only the hash of the address
      -- is kept.
      create table suppression (
        id uuid not null,
        organization_id uuid not null references organization,
        email_key text not null,
        reason text not null check (reason in ('HARD_BOUNCE', 'SOFT_BOUNCE', 'COMPLAINT', 'MANUAL', 'ERASED')),
        source text not null,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, email_key)
      );
      create index on suppression (organization_id, reason, id);

      -- Returns the hash by which an erased address is recognized, salted by organization, so that two cannot compare
      -- theirs. It uses only immutable functions, so that it is inlined. Backslashes are doubled, because the cast
      -- reads one as an escape.
      create function erased_email_key(organization uuid, address text) returns text
      language sql immutable parallel safe as $fn$
        select 'sha256:' || encode(sha256(replace(organization::text || '/' || lower(address), E'\\\\', E'\\\\\\\\')::bytea), 'hex')
      $fn$;

      -- Returns both forms in which a suppression can store an address.
      create function suppression_keys(organization uuid, address text) returns text[]
      language sql immutable parallel safe as $fn$
        select array[lower(address), erased_email_key(organization, address)]
      $fn$;
    `)
    this.addSql(EVENTS)
    this.addSql(TAGS)
  }

  override down(): void {
    this.addSql(`
      drop function add_tags, remove_tags, record_tags, ensure_tags, record_events, type_id, suppression_keys,
        erased_email_key;
      drop table suppression, subscriber_event, segment, custom_field, subscriber_tag, tag, subscriber_stat, subscriber;
    `)
  }
}

/**
 * Functions, because a session caches their plans and each is one round trip. Every statement in them sees what was
 * committed before it, even when an earlier one waited for a lock.
 */
const EVENTS = `
  -- Returns the TypeID of an id, as src/ids.ts writes it.
  create function type_id(prefix text, id uuid) returns text language sql immutable parallel safe as $fn$
    select prefix || '_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
        substring(b'00' || ('x' || replace(id::text, '-', ''))::bit(128) from place * 5 + 1 for 5)::bit(5)::int + 1, 1),
      '' order by place)
    from generate_series(0, 25) as place
  $fn$;

  -- Writes events. is_awaited: a run, or a goal of one, waits for one of them. may_start: an automation may begin with
  -- one of them, or would if it were not silent. Subscribers are locked against runs that begin a wait, so that either
  -- the run sees the event or this function sees the wait. Events that start nothing ("silent" in the cause) need no
  -- lock.
  create function record_events(organization uuid, given uuid[], people uuid[], types text[], facts jsonb[], cause jsonb,
    out ids uuid[], out is_awaited boolean, out may_start boolean) language plpgsql as $fn$
  begin
    is_awaited := false;
    if cause -> 'silent' is null then
      perform from subscriber s where s.organization_id = organization and s.id = any(people) order by s.id for share;
    end if;
    ids := array(select coalesce(id, new_id()) from unnest(given) with ordinality as event (id, place) order by place);
    insert into subscriber_event (id, organization_id, subscriber_id, type, data, cause)
      select event.id, organization, event.subscriber_id, event.type, event.data, record_events.cause
      from unnest(ids, people, types, facts) as event (id, subscriber_id, type, data);
    may_start := exists (select from (select distinct event.type, coalesce(lower(event.data ->> 'tag'),
          event.data ->> 'segmentId', case event.type when 'FIELD_UPDATED' then
            case event.data ->> 'custom' when 'true' then 'customFields.' else '' end || (event.data ->> 'field') end,
          '') as subject
        from unnest(types, facts) as event (type, data)) as event
      cross join lateral (values ('EVENT', event.type), (event.type, event.subject), (event.type, ''))
        as asked (type, key)
      join automation_trigger t on t.organization_id = organization and t.type = asked.type and t.match_key = asked.key);
    if cause -> 'silent' is not null then
      return;
    end if;
    -- Events of runs start other automations in a separate transaction, which holds none of these locks.
    if types && array['WORKFLOW_STARTED', 'WORKFLOW_COMPLETED', 'WORKFLOW_CANCELED'] then
      insert into automation_echo (organization_id, event_id, subscriber_id, type, data)
        select organization, event.id, event.subscriber_id, event.type, event.data
        from unnest(ids, people, types, facts) as event (id, subscriber_id, type, data)
        where exists (select from automation_trigger t where t.organization_id = organization
          and t.type = 'WORKFLOW_EVENT' and t.match_key = event.data ->> 'workflowId' || '/' || event.type);
    end if;
    is_awaited := exists (select from unnest(people, types) as event (subscriber_id, type)
      join run_wait w on w.organization_id = organization and w.subscriber_id = event.subscriber_id
        and w.event_type = event.type)
      or exists (select from unnest(people, types) as event (subscriber_id, type)
      join goal_watch w on w.organization_id = organization and w.subscriber_id = event.subscriber_id
        and w.event_type = event.type);
  end $fn$;
`

const TAGS = `
  -- Returns the tags of these names in order of first use, locked against deletion, and which of these people newly got
  -- each. Missing tags are created with the ids given beside the names. Unknown people are skipped.
  create function ensure_tags(organization uuid, given uuid[], names text[], people uuid[])
  returns table (id uuid, name text, made boolean, linked uuid[]) language plpgsql as $fn$
  #variable_conflict use_column
  declare
    wanted text[] := array(select lower(wish.name) from unnest(names) with ordinality as wish (name, place)
      group by lower(wish.name) order by min(place));
    known uuid[];
  begin
    for attempt in 1..5 loop
      known := array(select t.id from tag t where t.organization_id = organization and t.name_key = any(wanted)
        order by t.name_key for key share);
      if cardinality(known) = cardinality(wanted) then
        return query with linked as (
          insert into subscriber_tag (organization_id, subscriber_id, tag_id)
          select organization, s.id, k.id from subscriber s cross join unnest(known) as k (id)
          where s.organization_id = organization and s.id = any(people)
          order by s.id, k.id on conflict do nothing returning subscriber_id, tag_id)
        select t.id, t.name, t.id = any(given), array(select subscriber_id from linked where tag_id = t.id)
        from tag t where t.organization_id = organization and t.id = any(known)
        order by array_position(wanted, t.name_key);
        return;
      end if;
      -- The next attempt sees a tag that another transaction creates at this moment.
      insert into tag (id, organization_id, name)
        select distinct on (lower(name)) id, organization, name
        from unnest(given, names) with ordinality as wish (id, name, place)
        where not exists (select from tag t where t.organization_id = organization and t.name_key = lower(wish.name))
        order by lower(name), place
        on conflict (organization_id, name_key) do nothing;
    end loop;
    raise exception 'the tags are being changed by many at once' using errcode = 'serialization_failure';
  end $fn$;

  -- Records one event for each tag change.
  create function record_tags(organization uuid, kind text, people uuid[], tags uuid[], names text[], cause jsonb)
  returns table (event_id uuid, subscriber_id uuid, tag_id uuid, name text, data jsonb, is_awaited boolean,
    may_start boolean) language plpgsql as $fn$
  declare
    facts jsonb[];
    recorded record;
  begin
    if people is null then
      return;
    end if;
    with fact as materialized (select distinct tag, jsonb_build_object('tag', label, 'tagId', type_id('tag', tag)) as data
      from unnest(tags, names) as change (tag, label))
    select array_agg(fact.data order by place) into facts
      from unnest(tags) with ordinality as change (tag, place) join fact using (tag);
    select * into recorded
      from record_events(organization, array_fill(null::uuid, array[cardinality(people)]), people,
        array_fill(kind, array[cardinality(people)]), facts, cause);
    return query select changes.*, recorded.is_awaited, recorded.may_start
      from unnest(recorded.ids, people, tags, names, facts) as changes;
  end $fn$;

  create function add_tags(organization uuid, given uuid[], names text[], people uuid[], cause jsonb)
  returns table (event_id uuid, subscriber_id uuid, tag_id uuid, name text, data jsonb, is_awaited boolean,
    may_start boolean) language plpgsql as $fn$
  declare
    change record;
  begin
    if cause -> 'silent' is null then
      perform from subscriber s where s.organization_id = organization and s.id = any(people) order by s.id for share;
    end if;
    select array_agg(person order by person, tag.id) as people, array_agg(tag.id order by person, tag.id) as tags,
        array_agg(tag.name order by person, tag.id) as names
      into change from ensure_tags(organization, given, names, people) as tag cross join unnest(tag.linked) as person;
    return query select * from record_tags(organization, 'TAG_ADDED', change.people, change.tags, change.names, cause);
  end $fn$;

  -- Links are locked in one order, so that calls over the same people wait for each other instead of deadlocking.
  create function remove_tags(organization uuid, names text[], people uuid[], cause jsonb)
  returns table (event_id uuid, subscriber_id uuid, tag_id uuid, name text, data jsonb, is_awaited boolean,
    may_start boolean) language plpgsql as $fn$
  #variable_conflict use_column
  declare
    change record;
  begin
    if cause -> 'silent' is null then
      perform from subscriber s where s.organization_id = organization and s.id = any(people) order by s.id for share;
    end if;
    with doomed as (
      select l.subscriber_id, l.tag_id, t.name from subscriber_tag l
      join tag t on t.organization_id = organization and t.id = l.tag_id
      where l.organization_id = organization and l.subscriber_id = any(people)
        and t.name_key = any(array(select lower(wish) from unnest(names) as wish))
      order by l.subscriber_id, l.tag_id for update of l
    ), removed as (
      delete from subscriber_tag l using doomed d
      where l.organization_id = organization and l.subscriber_id = d.subscriber_id and l.tag_id = d.tag_id
      returning l.subscriber_id, l.tag_id, d.name)
    select array_agg(subscriber_id order by subscriber_id, tag_id) as people,
        array_agg(tag_id order by subscriber_id, tag_id) as tags, array_agg(name order by subscriber_id, tag_id) as names
      into change from removed;
    return query select * from record_tags(organization, 'TAG_REMOVED', change.people, change.tags, change.names, cause);
  end $fn$;
`
