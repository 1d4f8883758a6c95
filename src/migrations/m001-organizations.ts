import { Migration } from '@mikro-orm/migrations'

/**
 * Organizations and access to them: API tokens, admin keys, confirmation challenges, idempotency, rate limits, audit.
 */
export class M001Organizations extends Migration {
  override up(): void {
    this.addSql(`
      create extension if not exists pg_trgm;
      create extension if not exists btree_gin;

      -- Returns a UUIDv7, which sorts by creation. PostgreSQL has its own function from version 18 on.
      do $$ begin
        if current_setting('server_version_num')::int >= 180000 then
          create function new_id() returns uuid language sql volatile parallel safe as 'select uuidv7()';
        else
          create function new_id() returns uuid language sql volatile parallel safe as $fn$
            select encode(
              set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
                placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
                from 1 for 6), 52, 1), 53, 1), 'hex')::uuid
          $fn$;
        end if;
      end $$;

      -- Returns the smallest id of a moment; partitions and time ranges are cut at such ids.
      create function id_floor(moment timestamptz) returns uuid language sql immutable parallel safe as $fn$
        select (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid
      $fn$;

      -- Makes updated_at strictly increase, so that it can be compared as a version.
      create function touch_updated_at() returns trigger language plpgsql as $fn$
      begin
        new.updated_at := greatest(clock_timestamp()::timestamptz(3), old.updated_at + interval '1 millisecond');
        return new;
      end $fn$;

      create table organization (
        id uuid primary key,
        name text not null,
        slug text not null unique,
        logo text,
        email text,
        timezone text not null default 'Europe/Paris',
        verified boolean not null default false,
        plan text not null default 'FREE' check (plan in ('FREE', 'PREMIUM', 'ENTERPRISE')),
        subscription_status text,
        period_start timestamptz(3),
        period_end timestamptz(3),
        cancel_at_period_end boolean not null default false,
        custom_limits jsonb,
        double_opt_in boolean not null default false,
        confirmation_email jsonb,
        writing_style jsonb,
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now()
      );
      create trigger touch before update on organization for each row execute function touch_updated_at();

      create table api_token (
        id uuid primary key,
        organization_id uuid not null references organization,
        name text not null,
        token_hash bytea not null unique,
        last_four text not null,
        permissions text[] not null,
        expires_at timestamptz(3),
        revoked_at timestamptz(3),
        last_used_at timestamptz(3),
        created_at timestamptz(3) not null default now(),
        unique (organization_id, id)
      );

      create table admin_key (
        id uuid primary key,
        name text not null,
        key_hash bytea not null unique,
        last_four text not null,
        revoked_at timestamptz(3),
        last_used_at timestamptz(3),
        created_at timestamptz(3) not null default now()
      );

      create table confirmation_challenge (
        id uuid not null,
        organization_id uuid not null references organization,
        tool text not null,
        input_hash bytea not null,
        code_hash bytea not null,
        wrong_codes int not null default 0,
        expires_at timestamptz(3) not null,
        spent_at timestamptz(3),
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id)
      );
      create index on confirmation_challenge (organization_id, tool, input_hash);
      create index on confirmation_challenge (expires_at);

      create table idempotency_record (
        organization_id uuid not null references organization,
        key text not null,
        operation text not null,
        body_hash bytea not null,
        answer jsonb not null,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, key)
      );
      create index on idempotency_record (created_at);

      -- Returns the stored answer of an idempotency key, null when it has none, or isOther when the key was used for
      -- another request.
      create function kept_answer(organization uuid, called text, asked bytea) returns jsonb
      language plpgsql stable as $fn$
      begin
        return (select case when r.body_hash = asked then r.answer else '{"isOther": true}' end from idempotency_record r
          where r.organization_id = organization and r.key = called and r.created_at > now() - interval '24 hours');
      end $fn$;

      -- Locks a key until the transaction ends, also when the process dies, and returns its stored answer; isRunning
      -- when another transaction holds it. A function of two statements, so that the second one sees what the last
      -- holder committed.
      create function take_key(organization uuid, called text, asked bytea) returns jsonb language plpgsql as $fn$
      begin
        if not pg_try_advisory_xact_lock(hashtextextended(organization || '/' || called, 0)) then
          return '{"isRunning": true}';
        end if;
        return kept_answer(organization, called, asked);
      end $fn$;

      create function keep_answer(organization uuid, called text, asked bytea, named text, answered jsonb) returns void
      language plpgsql as $fn$
      begin
        insert into idempotency_record (organization_id, key, operation, body_hash, answer)
          values (organization, called, named, asked, answered)
          on conflict (organization_id, key) do update set operation = excluded.operation,
            body_hash = excluded.body_hash, answer = excluded.answer, created_at = now()
            where idempotency_record.created_at <= now() - interval '24 hours';
      end $fn$;

      -- Requests per minute. Unlogged, because losing it in a crash costs only one window.
      create unlogged table rate_window (
        organization_id uuid not null,
        bucket text not null,
        window_start timestamptz(0) not null,
        used int not null,
        primary key (organization_id, bucket)
      );

      create table audit_entry (
        id uuid not null,
        organization_id uuid not null references organization,
        actor text not null,
        action text not null,
        target text,
        data jsonb not null default '{}',
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, id)
      );
    `)
  }

  override down(): void {
    this.addSql(`
      drop function keep_answer, take_key, kept_answer;
      drop table audit_entry, rate_window, idempotency_record, confirmation_challenge, admin_key, api_token, organization;
      drop function touch_updated_at, id_floor, new_id;
    `)
  }
}
