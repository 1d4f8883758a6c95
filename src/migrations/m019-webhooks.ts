import { Migration } from '@mikro-orm/migrations'

/** Webhooks: the endpoints that receive an organization's events, and the delivery of each event to each of them. */
export class M019Webhooks extends Migration {
  override up(): void {
    this.addSql(`
      create table webhook (
        id uuid not null,
        organization_id uuid not null references organization,
        url text not null,
        description text not null default '',
        -- Null means every type.
        event_types text[],
        enabled boolean not null default true,
        disabled_at timestamptz(3),
        disabled_reason text check (disabled_reason in ('REQUESTED', 'FAILING', 'GONE')),
        -- Encrypted. The previous secret also signs until previous_until.
        secret bytea not null,
        previous_secret bytea,
        previous_until timestamptz(3),
        -- One worker at a time delivers to an endpoint, for one turn; the endpoint that was served longest ago comes
        -- first.
        turn int not null default 0,
        lease_until timestamptz(3),
        next_turn_at timestamptz(3) not null default now(),
        -- When the first delivery that its last turn left is due; null while it has a turn, or when nothing was left.
        due_at timestamptz(3),
        -- Failed attempts since the last success, and when the first of them failed.
        failures int not null default 0,
        failing_since timestamptz(3),
        -- Events after replay_after and before replay_until are still to be queued once more.
        replay_after uuid,
        replay_until uuid,
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        -- Its deliveries are deleted page by page; the webhook is not shown meanwhile.
        deleted_at timestamptz(3),
        primary key (organization_id, id)
      ) with (fillfactor = 50);
      create index webhook_enabled on webhook (organization_id) where enabled;
      create index webhook_due on webhook (due_at) where due_at is not null;
      -- Webhooks that may have work although no delivery is known to be pending, because a turn may have broken off.
      create index webhook_unsettled on webhook (organization_id, id)
        where deleted_at is not null or replay_after is not null or lease_until is not null;
      -- Not for the columns that workers update.
      create trigger touch before update of url, description, event_types, enabled, secret on webhook
        for each row execute function touch_updated_at();

      -- One row for each event and webhook. No foreign keys, to keep the writers of events fast; the rows of a deleted
      -- webhook are deleted with it. The event itself is read when it is sent.
      create table webhook_delivery (
        organization_id uuid not null,
        webhook_id uuid not null,
        event_id uuid not null,
        type text not null,
        status text not null default 'PENDING' check (status in ('PENDING', 'DELIVERED', 'FAILED')),
        attempts int not null default 0,
        queued_at timestamptz(3) not null default now(),
        next_attempt_at timestamptz(3) default now(),
        -- The first attempt since the delivery was last queued: it is retried for a day from then. Until then it only
        -- waits for us.
        first_attempt_at timestamptz(3),
        last_attempt_at timestamptz(3),
        response_status int,
        response_body text,
        error text,
        primary key (organization_id, webhook_id, event_id)
      ) with (fillfactor = 70);
      create index webhook_delivery_due on webhook_delivery (organization_id, webhook_id, next_attempt_at)
        where next_attempt_at is not null;
      -- Deliveries without an attempt; together with webhook.due_at they tell where something is due.
      create index webhook_delivery_fresh on webhook_delivery (organization_id, webhook_id)
        where attempts = 0 and next_attempt_at is not null;
      create index webhook_delivery_pending on webhook_delivery (organization_id, webhook_id, event_id)
        where status = 'PENDING';
      create index webhook_delivery_failed on webhook_delivery (organization_id, webhook_id, event_id)
        where status = 'FAILED';

      -- Everything that happens to a subscriber is a row of subscriber_event, so no writer can forget to queue it.
      -- Nearly all statements concern one organization: where it has no webhook, they cost only two lookups in a small
      -- index.
      create function queue_events_for_webhooks() returns trigger language plpgsql as $fn$
      declare
        one uuid;
      begin
        if not exists (select from webhook where enabled) then
          return null;
        end if;
        select organization_id into one from made limit 1;
        if not exists (select from webhook where organization_id = one and enabled)
            and not exists (select from made where organization_id <> one) then
          return null;
        end if;
        insert into webhook_delivery (organization_id, webhook_id, event_id, type)
        select made.organization_id, webhook.id, made.id, made.type
        from made join webhook on webhook.organization_id = made.organization_id and webhook.enabled
          and (webhook.event_types is null or made.type = any (webhook.event_types));
        return null;
      end $fn$;
      create trigger queue_for_webhooks after insert on subscriber_event referencing new table as made
        for each statement execute function queue_events_for_webhooks();
    `)
  }

  override down(): void {
    this.addSql(`
      drop trigger queue_for_webhooks on subscriber_event;
      drop function queue_events_for_webhooks;
      drop table webhook_delivery, webhook;
    `)
  }
}
