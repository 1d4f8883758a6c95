import { Migration } from '@mikro-orm/migrations'

/** The people who were erased: an id that nothing else holds any more, and the hash of the address. */
export class M008Erasure extends Migration {
  override up(): void {
    this.addSql(`
      create table erasure (
        organization_id uuid not null references organization,
        subscriber_id uuid not null,
        email_key text not null,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, subscriber_id)
      );
      create index on erasure (organization_id, email_key);
    `)
  }

  override down(): void {
    this.addSql('drop table erasure;')
  }
}
