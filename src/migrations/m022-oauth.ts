import { Migration } from '@mikro-orm/migrations'

/** The records of the OAuth server, and which clients members gave access to which organization. */
export class M022Oauth extends Migration {
  override up(): void {
    this.addSql(`
      -- Clients, sign-ins in progress, codes and tokens. Secrets that clients and browsers hold are stored as their
      -- SHA-256; the rest is encrypted.
      create table oauth_record (
        model text not null,
        id_hash bytea not null,
        payload bytea not null,
        grant_hash bytea,
        uid_hash bytea,
        consumed_at timestamptz(3),
        -- Null for clients, which are deleted when no member gives them access.
        expires_at timestamptz(3),
        created_at timestamptz(3) not null default now(),
        primary key (model, id_hash)
      );
      create index on oauth_record (grant_hash) where grant_hash is not null;
      create index on oauth_record (uid_hash) where uid_hash is not null;
      create index on oauth_record (expires_at);

      -- A token works only with its grant, and a grant only with the membership.
      create table oauth_grant (
        grant_hash bytea primary key,
        organization_id uuid not null,
        member_id uuid not null,
        client_hash bytea not null,
        client_name text not null,
        last_used_at timestamptz(3),
        expires_at timestamptz(3) not null,
        created_at timestamptz(3) not null default now(),
        foreign key (organization_id, member_id) references membership on delete cascade
      ) with (fillfactor = 70);
      create index on oauth_grant (organization_id, member_id);
      create index on oauth_grant (client_hash);
    `)
  }

  override down(): void {
    this.addSql('drop table oauth_grant, oauth_record;')
  }
}
