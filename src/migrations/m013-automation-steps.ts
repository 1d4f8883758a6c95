import { Migration } from '@mikro-orm/migrations'

/** What steps keep beside their runs: how many passed a THROTTLE. */
export class M013AutomationSteps extends Migration {
  override up(): void {
    this.addSql(`
      -- The window that is being filled, of one step in all its versions; it may lie ahead.
      create table automation_throttle (
        organization_id uuid not null,
        automation_id uuid not null,
        step_id text not null,
        window_at timestamptz(3) not null,
        taken int not null,
        primary key (organization_id, automation_id, step_id),
        foreign key (organization_id, automation_id) references automation (organization_id, id) on delete cascade
      );
    `)
  }

  override down(): void {
    this.addSql('drop table automation_throttle;')
  }
}
