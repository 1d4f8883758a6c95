import { Migration } from '@mikro-orm/migrations'

/** Automations: drafts, immutable versions, who may enter, runs and their log, goals, groups, and the outbox. */
export class M004Automations extends Migration {
  override up(): void {
    this.addSql(`
      create table automation_group (
        id uuid not null,
        organization_id uuid not null references organization,
        name text not null,
        name_key text not null generated always as (lower(name)) stored,
        conflict_strategy text not null check (conflict_strategy in ('FIRST_WINS', 'LAST_WINS', 'PRIORITY', 'QUEUE')),
        -- How long QUEUE lets a subscriber wait for their turn: {amount, unit}; null means without end.
        max_queue_age jsonb,
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, name_key)
      );
      create trigger touch before update on automation_group for each row execute function touch_updated_at();

      create table automation (
        id uuid not null,
        organization_id uuid not null references organization,
        name text not null,
        status text not null default 'DRAFT' check (status in ('DRAFT', 'ACTIVE', 'PAUSED', 'ARCHIVED')),
        draft jsonb not null default '{"steps": [], "edges": []}',
        settings jsonb not null default '{}',
        success_goals jsonb not null default '[]',
        published_version_id uuid,
        group_id uuid,
        updated_by text,
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        foreign key (organization_id, group_id) references automation_group (organization_id, id)
      );
      create trigger touch before update on automation for each row execute function touch_updated_at();

      alter table campaign add foreign key (organization_id, automation_id)
        references automation (organization_id, id) on delete cascade;

      -- A published definition, which never changes: {steps, edges, settings, successGoals, emails: {stepId: {...}}}.
      create table automation_version (
        id uuid not null,
        organization_id uuid not null,
        automation_id uuid not null,
        number int not null,
        definition jsonb not null,
        created_by text,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, automation_id, number),
        foreign key (organization_id, automation_id) references automation (organization_id, id) on delete cascade
      );
      alter table automation add foreign key (organization_id, published_version_id)
        references automation_version (organization_id, id) deferrable initially deferred;

      -- The triggers of the published version, one row for each thing that can fire it, so that events find them by index.
      create table automation_trigger (
        organization_id uuid not null,
        automation_id uuid not null,
        step_id text not null,
        type text not null,
        match_key text not null default '',
        primary key (organization_id, type, match_key, automation_id, step_id),
        foreign key (organization_id, automation_id) references automation (organization_id, id) on delete cascade
      );
      create index on automation_trigger (organization_id, automation_id);

      -- Events of runs for which triggers of other automations wait; see record_events().
      create table automation_echo (
        organization_id uuid not null,
        event_id uuid not null,
        subscriber_id uuid not null,
        type text not null,
        data jsonb not null,
        primary key (organization_id, event_id),
        foreign key (organization_id, subscriber_id) references subscriber (organization_id, id) on delete cascade
      );

      -- How often a subscriber entered an automation; the upsert on it numbers the runs.
      create table automation_entry (
        organization_id uuid not null,
        automation_id uuid not null,
        subscriber_id uuid not null,
        runs int not null default 0,
        -- Runs that a group did not turn away on entry.
        entered int not null default 0,
        last_entered_at timestamptz(3),
        primary key (organization_id, automation_id, subscriber_id),
        foreign key (organization_id, automation_id) references automation (organization_id, id) on delete cascade,
        foreign key (organization_id, subscriber_id) references subscriber (organization_id, id) on delete cascade
      );

      create table automation_run (
        id uuid not null,
        organization_id uuid not null,
        automation_id uuid not null,
        version_id uuid not null,
        subscriber_id uuid not null,
        number int not null,
        entry_key text not null default '',
        -- The group of the automation. A subscriber has one active run in it, beside those that queue. No foreign key:
        -- runs that are over, of which there may be millions, keep a group that is deleted.
        group_id uuid,
        -- Since when the run waits for its turn in the group, and until when it may; null once it has its turn.
        queued_at timestamptz(3),
        queue_expires_at timestamptz(3),
        status text not null default 'QUEUED' check (status in ('QUEUED', 'ACTIVE', 'WAITING', 'COMPLETED', 'CANCELED',
          'FAILED', 'SKIPPED')),
        exit_reason text,
        error text,
        held boolean not null default false,
        current_step_id text,
        visit int not null default 0,
        wait_kind text check (wait_kind in ('TIME', 'LIMIT', 'EVENT', 'CONDITION', 'GOAL', 'MESSAGE', 'WEBHOOK')),
        wake_at timestamptz(3),
        -- When a held run should have gone on.
        due_at timestamptz(3),
        -- The (step, visit) of a wait that was told to end early, or whose event came.
        wake_reason text,
        trigger jsonb not null default '{}',
        context jsonb not null default '{}',
        temporal_run_id text,
        -- The Temporal run in which the run failed last. A request from another Temporal run means that an operator
        -- reset it.
        failed_in text,
        -- The transaction in which the run was entered; its own events came with the entry and not after it.
        entered_in xid8 not null default pg_current_xact_id(),
        entered_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        ended_at timestamptz(3),
        primary key (organization_id, id),
        unique (organization_id, automation_id, subscriber_id, number),
        foreign key (organization_id, automation_id) references automation (organization_id, id) on delete cascade,
        foreign key (organization_id, version_id) references automation_version (organization_id, id),
        foreign key (organization_id, subscriber_id) references subscriber (organization_id, id) on delete cascade
      ) with (fillfactor = 70);
      create unique index automation_run_group on automation_run (organization_id, group_id, subscriber_id)
        where status in ('QUEUED', 'ACTIVE', 'WAITING') and group_id is not null and queued_at is null;
      create index automation_run_queue on automation_run (organization_id, group_id, subscriber_id, queued_at, id)
        where status = 'QUEUED' and queued_at is not null;
      create unique index automation_run_active on automation_run (organization_id, automation_id, subscriber_id, entry_key)
        where status in ('QUEUED', 'ACTIVE', 'WAITING');
      -- Runs that queued in a group in vain; re-entry does not count them.
      create index automation_run_vain on automation_run (organization_id, automation_id, subscriber_id)
        where status = 'SKIPPED' and exit_reason = 'EXPIRED';
      create index on automation_run (organization_id, subscriber_id, id);
      create index on automation_run (organization_id, automation_id, id);
      create index on automation_run (organization_id, automation_id, id) where held;
      -- The statistics of an automation are counted from these two indexes alone. Each wait moves its run within them,
      -- which costs a kilobyte of WAL. The version is for the active runs of each.
      create index automation_run_standing
        on automation_run (organization_id, automation_id, version_id, current_step_id, status)
        where status in ('QUEUED', 'ACTIVE', 'WAITING');
      create index automation_run_ended on automation_run (organization_id, automation_id, status, exit_reason)
        where ended_at is not null;
      -- For runs of all organizations whose time has come and which did not go on.
      create index automation_run_overdue on automation_run (wake_at)
        where status in ('QUEUED', 'ACTIVE', 'WAITING') and not held;
      create trigger touch before update on automation_run for each row execute function touch_updated_at();

      -- Locked while it is decided which run gets a subscriber's place in a group.
      create table automation_group_place (
        organization_id uuid not null,
        group_id uuid not null,
        subscriber_id uuid not null,
        decisions int not null default 1,
        primary key (organization_id, group_id, subscriber_id),
        foreign key (organization_id, group_id) references automation_group (organization_id, id) on delete cascade,
        foreign key (organization_id, subscriber_id) references subscriber (organization_id, id) on delete cascade
      ) with (fillfactor = 70);

      -- The run's log and its memory: the outcome of each visit of a step is stored once and returned to every retry.
      create table run_step (
        organization_id uuid not null,
        run_id uuid not null,
        visit int not null,
        step_id text not null,
        type text not null,
        port text,
        outcome jsonb not null default '{}',
        started_at timestamptz(3) not null default now(),
        ended_at timestamptz(3),
        primary key (organization_id, run_id, visit),
        foreign key (organization_id, run_id) references automation_run (organization_id, id) on delete cascade
      );

      -- Runs that an event of their subscriber moves on, found by its type. A row is the current wait of the run
      -- (rule_id is '') or a rule that ends it. The type of a wait for a condition is ''.
      create table run_wait (
        organization_id uuid not null,
        subscriber_id uuid not null,
        event_type text not null,
        run_id uuid not null,
        rule_id text not null default '',
        visit int not null,
        conditions jsonb not null default '{}',
        -- Not now(): the transaction began earlier and may have recorded events of its own before the wait.
        began_at timestamptz(3) not null default clock_timestamp(),
        primary key (organization_id, subscriber_id, event_type, run_id, rule_id),
        foreign key (organization_id, run_id) references automation_run (organization_id, id) on delete cascade
      );

      create index on run_wait (organization_id, run_id);
      -- For waits that just began, which are compared with events once more.
      create index on run_wait (began_at);
      create index run_wait_condition on run_wait (organization_id, subscriber_id) where event_type = '';

      -- The variant that a subscriber first got at a SPLIT with a holdout, to compare the results of each.
      create table automation_variant (
        organization_id uuid not null,
        automation_id uuid not null,
        step_id text not null,
        subscriber_id uuid not null,
        variant_id text not null,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, automation_id, step_id, subscriber_id),
        foreign key (organization_id, automation_id) references automation (organization_id, id) on delete cascade,
        foreign key (organization_id, subscriber_id) references subscriber (organization_id, id) on delete cascade
      );

      -- Goals that were reached, each once by each run.
      create table goal_conversion (
        organization_id uuid not null,
        run_id uuid not null,
        goal_id text not null,
        automation_id uuid not null,
        subscriber_id uuid not null,
        -- The event that reached the goal; null when its filters came to match.
        event_id uuid,
        value numeric(18, 2),
        currency text,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, run_id, goal_id),
        foreign key (organization_id, run_id) references automation_run (organization_id, id) on delete cascade
      );
      create index on goal_conversion (organization_id, automation_id, goal_id);

      -- Goals that a run may still reach, also after its end. The type of a goal by filters is ''.
      create table goal_watch (
        organization_id uuid not null,
        run_id uuid not null,
        goal_id text not null,
        subscriber_id uuid not null,
        event_type text not null,
        window_days int not null,
        -- Null until the first email was sent, for a goal whose window begins with that.
        opens_at timestamptz(3),
        expires_at timestamptz(3),
        began_at timestamptz(3) not null default clock_timestamp(),
        primary key (organization_id, run_id, goal_id),
        foreign key (organization_id, run_id) references automation_run (organization_id, id) on delete cascade
      );
      create index on goal_watch (organization_id, subscriber_id, event_type);
      create index goal_watch_condition on goal_watch (organization_id, subscriber_id) where event_type = '';
      create index on goal_watch (expires_at);
      create index on goal_watch (began_at);

      -- What Temporal must be told, and work for other transactions ('work'). Written in the transaction that decided
      -- it, and done after its commit.
      create table outbox (
        id bigint generated always as identity primary key,
        organization_id uuid not null,
        workflow_id text not null,
        kind text not null check (kind in ('start', 'signal', 'work')),
        payload jsonb not null default '{}',
        priority smallint not null default 0,
        attempts int not null default 0,
        available_at timestamptz(3) not null default now(),
        created_at timestamptz(3) not null default now()
      );
      create index on outbox (priority desc, id);
      create index on outbox (workflow_id, id);
    `)
  }

  override down(): void {
    this.addSql(`
      alter table campaign drop constraint campaign_organization_id_automation_id_fkey;
      alter table automation drop constraint automation_organization_id_published_version_id_fkey;
      drop table outbox, goal_watch, goal_conversion, automation_variant, run_wait, run_step, automation_group_place, automation_run,
        automation_entry, automation_echo, automation_trigger, automation_version, automation, automation_group;
    `)
  }
}
