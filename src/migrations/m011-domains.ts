import { Migration } from '@mikro-orm/migrations'

/** The DKIM keys of sending domains, and the state of their verification. */
export class M011Domains extends Migration {
  override up(): void {
    this.addSql(`
      alter table domain
        -- What the owner publishes in DNS to prove that the domain is theirs.
        add column ownership_token text not null default replace(gen_random_uuid()::text, '-', ''),
        add column checked_at timestamptz(3),
        -- Daily checks in a row that found a needed record missing or wrong, and when the last of them was.
        add column missed_checks smallint not null default 0,
        add column missed_at timestamptz(3);

      create table dkim_key (
        id uuid not null,
        organization_id uuid not null,
        domain_id uuid not null,
        selector text not null,
        -- SPKI in base64, as DNS carries it.
        public_key text not null,
        -- PKCS #8, encrypted with the installation's key; null once it signs no more.
        private_key bytea,
        -- NEXT waits until it is in DNS, ACTIVE signs, RETIRING stays in DNS for email that is still on its way.
        state text not null check (state in ('NEXT', 'ACTIVE', 'RETIRING')),
        retired_at timestamptz(3),
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, domain_id, selector),
        foreign key (organization_id, domain_id) references domain (organization_id, id) on delete cascade
      );
      create unique index dkim_key_active on dkim_key (organization_id, domain_id) where state = 'ACTIVE';
      create unique index dkim_key_next on dkim_key (organization_id, domain_id) where state = 'NEXT';
    `)
  }

  override down(): void {
    this.addSql(`
      drop table dkim_key;
      alter table domain drop column ownership_token, drop column checked_at, drop column missed_checks,
        drop column missed_at;
    `)
  }
}
