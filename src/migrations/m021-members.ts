import { Migration } from '@mikro-orm/migrations'

/** People who log in, and the organizations that each belongs to. */
export class M021Members extends Migration {
  override up(): void {
    this.addSql(`
      create table member (
        id uuid primary key,
        email text not null,
        email_key text not null unique generated always as (lower(email)) stored,
        name text not null,
        -- An scrypt hash with its parameters and salt; null until a password is set.
        password text,
        last_login_at timestamptz(3),
        created_at timestamptz(3) not null default now()
      );

      create table membership (
        organization_id uuid not null references organization,
        member_id uuid not null references member on delete cascade,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, member_id)
      );
      create index on membership (member_id);
    `)
  }

  override down(): void {
    this.addSql('drop table membership, member;')
  }
}
