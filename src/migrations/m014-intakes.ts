import { Migration } from '@mikro-orm/migrations'

/** Ways into an automation: intakes of many people at once, and inbound webhooks. */
export class M014Intakes extends Migration {
  override up(): void {
    this.addSql(`
      create table automation_intake (
        id uuid not null,
        organization_id uuid not null,
        automation_id uuid not null,
        -- Subscribers who match these and the trigger's own filters enter.
        filters jsonb not null,
        -- What begins the runs, as their trigger records it.
        cause jsonb not null,
        -- At most so many subscribers enter; null means all.
        most int,
        -- How many subscribers matched when the intake began.
        expected int not null,
        status text not null default 'RUNNING' check (status in ('RUNNING', 'COMPLETED', 'CANCELED', 'FAILED')),
        error text,
        -- All subscribers up to here have been looked at; advances in the transaction that lets them in.
        reached uuid not null default '00000000-0000-0000-0000-000000000000',
        looked int not null default 0,
        entered int not null default 0,
        created_at timestamptz(3) not null default now(),
        finished_at timestamptz(3),
        primary key (organization_id, id),
        foreign key (organization_id, automation_id) references automation (organization_id, id) on delete cascade
      ) with (fillfactor = 70);
      create index on automation_intake (organization_id, automation_id, id);
      -- For intakes of all organizations that a workflow should be working on.
      create index automation_intake_open on automation_intake (created_at) where status = 'RUNNING';

      -- The address of an INBOUND_WEBHOOK trigger; its secret is derived from the id, so that none is stored.
      create table automation_webhook (
        id uuid not null,
        organization_id uuid not null,
        automation_id uuid not null,
        step_id text not null,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, automation_id, step_id),
        foreign key (organization_id, automation_id) references automation (organization_id, id) on delete cascade
      );
      create index on automation_webhook (id);

      -- Messages that were accepted, with their answers: a repeated message gets the same answer.
      create table automation_webhook_receipt (
        organization_id uuid not null,
        webhook_id uuid not null,
        message_id text not null,
        answer jsonb not null default '{}',
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, webhook_id, message_id),
        foreign key (organization_id, webhook_id) references automation_webhook (organization_id, id) on delete cascade
      );
      create index on automation_webhook_receipt (created_at);
    `)
  }

  override down(): void {
    this.addSql('drop table automation_webhook_receipt, automation_webhook, automation_intake;')
  }
}
