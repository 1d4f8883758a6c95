import { Migration } from '@mikro-orm/migrations'

/** People and what is known of them: subscribers, their numbers, tags, fields, segments, events, suppressions. */
export class M002Audience extends Migration {
  override up(): void {
    this.addSql(`
      create table subscriber (
        id uuid not null,
        organization_id uuid not null references organization,
        email text not null,
        email_key text not null generated always as (lower(email)) stored,
        name text,
        phone text,
        status text not null check (status in ('PENDING_CONFIRMATION', 'SUBSCRIBED', 'UNSUBSCRIBED', 'BOUNCED',
          'BANNED', 'COMPLAINED', 'TRANSACTIONAL')),
        country text,
        ip_address text,
        fields jsonb not null default '{}',
        bounce_category text,
        confirmed_at timestamptz(3),
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, email_key)
      );
      create index on subscriber (organization_id, status, id);
      -- Without a pending list: flushing it made some inserts many times slower than the rest.
      create index subscriber_fields on subscriber using gin (organization_id, fields jsonb_path_ops)
        with (fastupdate = off);
      create index subscriber_search on subscriber using gin (organization_id, email_key gin_trgm_ops, name gin_trgm_ops)
        with (fastupdate = off);
      create trigger touch before update on subscriber for each row execute function touch_updated_at();

      -- Numbers that move with every email: narrow and without secondary indexes, so that updates stay in the page.
      create table subscriber_stat (
        organization_id uuid not null,
        subscriber_id uuid not null,
        revenue numeric(18, 2) not null default 0,
        email_count int not null default 0,
        open_count int not null default 0,
        click_count int not null default 0,
        last_opened_at timestamptz(3),
        last_clicked_at timestamptz(3),
        primary key (organization_id, subscriber_id),
        foreign key (organization_id, subscriber_id) references subscriber (organization_id, id) on delete cascade
      ) with (fillfactor = 70);

      create table tag (
        id uuid not null,
        organization_id uuid not null references organization,
        name text not null,
        name_key text not null generated always as (lower(name)) stored,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, name_key)
      );

      create table subscriber_tag (
        organization_id uuid not null,
        subscriber_id uuid not null,
        tag_id uuid not null,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, subscriber_id, tag_id),
        foreign key (organization_id, subscriber_id) references subscriber (organization_id, id) on delete cascade,
        foreign key (organization_id, tag_id) references tag (organization_id, id) on delete cascade
      );
      create index on subscriber_tag (organization_id, tag_id, subscriber_id);

      create table custom_field (
        id uuid not null,
        organization_id uuid not null references organization,
        name text not null,
        type text not null check (type in ('string', 'number', 'boolean', 'date')),
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, name)
      );

      create table segment (
        id uuid not null,
        organization_id uuid not null references organization,
        name text not null,
        filters jsonb not null default '[]',
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        primary key (organization_id, id)
      );
      create trigger touch before update on segment for each row execute function touch_updated_at();

      -- Everything that happened to a person. Partitioned by time through its id; see ensure_partitions().
      create table subscriber_event (
        id uuid not null,
        organization_id uuid not null,
        subscriber_id uuid not null,
        type text not null,
        data jsonb not null default '{}',
        cause jsonb not null default '{}',
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id)
      ) partition by range (id);
      create index on subscriber_event (organization_id, subscriber_id, type, id);
      create index on subscriber_event (organization_id, type, id);

      -- Addresses that get no email, whatever a subscriber's status. Of erased people only the hash of the address is kept.
      create table suppression (
        id uuid not null,
        organization_id uuid not null references organization,
        email_key text not null,
        reason text not null check (reason in ('HARD_BOUNCE', 'SOFT_BOUNCE', 'COMPLAINT', 'MANUAL', 'ERASED')),
        source text not null,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, email_key)
      );

      -- The hash by which an erased address is known again: salted by organization, so that two cannot compare theirs.
      create function erased_email_key(organization uuid, address text) returns text
      language sql immutable parallel safe as $fn$
        select 'sha256:' || encode(sha256(convert_to(organization::text || '/' || lower(address), 'UTF8')), 'hex')
      $fn$;

      -- Both spellings that a suppression of an address can have.
      create function suppression_keys(organization uuid, address text) returns text[]
      language sql immutable parallel safe as $fn$
        select array[lower(address), erased_email_key(organization, address)]
      $fn$;
    `)
  }

  override down(): void {
    this.addSql(`
      drop function suppression_keys, erased_email_key;
      drop table suppression, subscriber_event, segment, custom_field, subscriber_tag, tag, subscriber_stat, subscriber;
    `)
  }
}
