import { Migration } from '@mikro-orm/migrations'

/**
 * Timed triggers: until when each was looked at, the intakes that it began, and by which occasion each subscriber
 * entered.
 */
export class M015TimedTriggers extends Migration {
  override up(): void {
    this.addSql(`
      -- A timed trigger of a published automation; its Temporal schedule follows this row.
      create table automation_schedule (
        organization_id uuid not null,
        automation_id uuid not null,
        step_id text not null,
        -- What decides when it fires: the configuration without the filters, and the time zone.
        timing jsonb not null,
        -- Everything that was due up to here has been handled.
        looked_until timestamptz(3) not null default now(),
        -- When it is to be looked at again; null while the automation is paused.
        next_at timestamptz(3),
        primary key (organization_id, automation_id, step_id),
        foreign key (organization_id, automation_id) references automation (organization_id, id) on delete cascade
      ) with (fillfactor = 70);
      create index on automation_schedule (next_at);

      -- The last occasion by which a subscriber entered: the day of a date, the beginning of a silence. Nobody enters
      -- by the same one twice, however a trigger is edited.
      create table automation_occasion (
        organization_id uuid not null,
        automation_id uuid not null,
        step_id text not null,
        subscriber_id uuid not null,
        occasion text not null,
        primary key (organization_id, automation_id, step_id, subscriber_id),
        foreign key (organization_id, automation_id) references automation (organization_id, id) on delete cascade,
        foreign key (organization_id, subscriber_id) references subscriber (organization_id, id) on delete cascade
      ) with (fillfactor = 70);
      create index on automation_occasion (organization_id, subscriber_id);

      -- For an intake that a timed trigger began: the subscribers who were due after due_from and up to due_to.
      alter table automation_intake add step_id text, add due_from timestamptz(3), add due_to timestamptz(3),
        add unique (organization_id, automation_id, step_id, due_to);

      alter table outbox drop constraint outbox_kind_check,
        add constraint outbox_kind_check check (kind in ('start', 'signal', 'work', 'schedule'));

      -- Returns the moment of a wall-clock time in a zone. A time that daylight saving skips moves forward; of a time
      -- that comes twice, the first is meant. PostgreSQL takes the second, so earlier moments with the same clock time
      -- are tried.
      create function local_moment(wall timestamp, zone text) returns timestamptz language sql stable parallel safe as $fn$
        select coalesce((select found - back from unnest(array['3 hours', '2 hours', '1 hour', '30 minutes']::interval[]) as back
          where (found - back) at time zone zone = wall order by back desc limit 1), found)
        from (select wall at time zone zone) as read (found)
      $fn$;
    `)
  }

  override down(): void {
    this.addSql(`
      drop function local_moment;
      delete from outbox where kind = 'schedule';
      alter table outbox drop constraint outbox_kind_check,
        add constraint outbox_kind_check check (kind in ('start', 'signal', 'work'));
      alter table automation_intake drop step_id, drop due_from, drop due_to;
      drop table automation_occasion, automation_schedule;
    `)
  }
}
