import { Migration } from '@mikro-orm/migrations'

/** What came back about emails: bounces, delays, complaints, replies. */
export class M017Reports extends Migration {
  override up(): void {
    this.addSql(`
      -- Reports as they came, each once by its fingerprint within its email, kept for three months. No foreign key:
      -- emails are partitioned by time and are deleted with their partition.
      create table email_report (
        id uuid not null,
        organization_id uuid not null references organization,
        message_id uuid not null,
        kind text not null check (kind in ('BOUNCE', 'DELAY', 'COMPLAINT', 'REPLY', 'AUTOMATIC')),
        fingerprint bytea not null,
        category text,
        status text,
        diagnostic text,
        raw bytea not null,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, message_id, fingerprint)
      );
      create index on email_report (created_at);
    `)
  }

  override down(): void {
    this.addSql('drop table email_report;')
  }
}
