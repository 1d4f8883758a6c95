import { Migration } from '@mikro-orm/migrations'

/** What a sending domain signs with. */
export class M011Domains extends Migration {
  override up(): void {
    this.addSql(`
      create table dkim_key (
        id uuid not null,
        organization_id uuid not null,
        domain_id uuid not null,
        selector text not null,
        -- SPKI in base64, as DNS carries it.
        public_key text not null,
        -- PKCS #8, encrypted with the installation's key.
        private_key bytea not null,
        state text not null check (state in ('ACTIVE')),
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, domain_id, selector),
        foreign key (organization_id, domain_id) references domain (organization_id, id) on delete cascade
      );
      create unique index dkim_key_active on dkim_key (organization_id, domain_id) where state = 'ACTIVE';
    `)
  }

  override down(): void {
    this.addSql('drop table dkim_key;')
  }
}
