import { Migration } from '@mikro-orm/migrations'

/** What steps store beside their runs: how many passed a THROTTLE, and which requests are to be sent. */
export class M013AutomationSteps extends Migration {
  override up(): void {
    this.addSql(`
      -- The window that a THROTTLE step is filling, for all versions of the step; it may be in the future.
      create table automation_throttle (
        organization_id uuid not null,
        automation_id uuid not null,
        step_id text not null,
        window_at timestamptz(3) not null,
        taken int not null,
        primary key (organization_id, automation_id, step_id),
        foreign key (organization_id, automation_id) references automation (organization_id, id) on delete cascade
      );

      -- Requests of WEBHOOK steps that are to be sent, or sent again. A row is deleted when its run got the result.
      create table run_webhook (
        organization_id uuid not null,
        -- The automation of the run: each automation gets its share of every claim.
        automation_id uuid not null,
        run_id uuid not null,
        visit int not null,
        request jsonb not null,
        attempt int not null default 0,
        -- While a worker holds the request, the end of its claim.
        next_attempt_at timestamptz(3) not null default now(),
        primary key (organization_id, run_id, visit),
        foreign key (organization_id, run_id) references automation_run (organization_id, id) on delete cascade
      );
      create index on run_webhook (organization_id, automation_id, next_attempt_at);
    `)
  }

  override down(): void {
    this.addSql('drop table run_webhook, automation_throttle;')
  }
}
