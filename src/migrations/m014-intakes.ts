import { Migration } from '@mikro-orm/migrations'

/** Many people on their way into an automation. */
export class M014Intakes extends Migration {
  override up(): void {
    this.addSql(`
      create table automation_intake (
        id uuid not null,
        organization_id uuid not null,
        automation_id uuid not null,
        -- Whoever matches these and the trigger's own filters enters.
        filters jsonb not null,
        -- What the runs are begun by, as their trigger says.
        cause jsonb not null,
        -- At most so many are let in; null is everybody.
        most int,
        -- How many matched when it began.
        expected int not null,
        status text not null default 'RUNNING' check (status in ('RUNNING', 'COMPLETED', 'CANCELED', 'FAILED')),
        error text,
        -- Everybody up to here has been looked at; moves in the transaction that lets them in.
        reached uuid not null default '00000000-0000-0000-0000-000000000000',
        looked int not null default 0,
        entered int not null default 0,
        created_at timestamptz(3) not null default now(),
        finished_at timestamptz(3),
        primary key (organization_id, id),
        foreign key (organization_id, automation_id) references automation (organization_id, id) on delete cascade
      ) with (fillfactor = 70);
      create index on automation_intake (organization_id, automation_id, id);
    `)
  }

  override down(): void {
    this.addSql('drop table automation_intake;')
  }
}
