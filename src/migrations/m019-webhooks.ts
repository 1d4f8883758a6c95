import { Migration } from '@mikro-orm/migrations'

/** Webhooks: the addresses that an organization has told events to, and what became of each event at each of them. */
export class M019Webhooks extends Migration {
  override up(): void {
    this.addSql(`
      create table webhook (
        id uuid not null,
        organization_id uuid not null references organization,
        url text not null,
        description text not null default '',
        -- Null for every type.
        event_types text[],
        enabled boolean not null default true,
        disabled_at timestamptz(3),
        disabled_reason text check (disabled_reason in ('REQUESTED', 'FAILING', 'GONE')),
        -- Sealed. The one before signs as well until its time is over.
        secret bytea not null,
        previous_secret bytea,
        previous_until timestamptz(3),
        -- One worker at a time tells an endpoint, for one turn; who was served longest ago comes first.
        turn int not null default 0,
        lease_until timestamptz(3),
        next_turn_at timestamptz(3) not null default now(),
        -- When the first of what its last turn left is due; null while it has a turn, or where nothing was left.
        due_at timestamptz(3),
        -- Attempts that failed since the last that did not, and when the first of them did.
        failures int not null default 0,
        failing_since timestamptz(3),
        -- Events after the first and before the second are still to be queued once more.
        replay_after uuid,
        replay_until uuid,
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        -- Its deliveries go page by page; it is not shown meanwhile.
        deleted_at timestamptz(3),
        primary key (organization_id, id)
      ) with (fillfactor = 50);
      create index webhook_enabled on webhook (organization_id) where enabled;
      create index webhook_due on webhook (due_at) where due_at is not null;
      -- What may have work though nothing of it is known to be pending; a turn may have broken off.
      create index webhook_unsettled on webhook (organization_id, id)
        where deleted_at is not null or replay_after is not null or lease_until is not null;
      -- Not for what workers note.
      create trigger touch before update of url, description, event_types, enabled, secret on webhook
        for each row execute function touch_updated_at();

      -- One row for each event and webhook, without foreign keys for the sake of whoever writes the events: what belongs
      -- to a webhook that is gone goes with it. The event itself is read when it is sent.
      create table webhook_delivery (
        organization_id uuid not null,
        webhook_id uuid not null,
        event_id uuid not null,
        type text not null,
        status text not null default 'PENDING' check (status in ('PENDING', 'DELIVERED', 'FAILED')),
        attempts int not null default 0,
        queued_at timestamptz(3) not null default now(),
        next_attempt_at timestamptz(3) default now(),
        -- Since it was queued last: from then on it is tried for a day. Until then it only waits for us.
        first_attempt_at timestamptz(3),
        last_attempt_at timestamptz(3),
        response_status int,
        response_body text,
        error text,
        primary key (organization_id, webhook_id, event_id)
      ) with (fillfactor = 70);
      create index webhook_delivery_due on webhook_delivery (organization_id, webhook_id, next_attempt_at)
        where next_attempt_at is not null;
      -- What came since; with webhook.due_at it tells where something is due.
      create index webhook_delivery_fresh on webhook_delivery (organization_id, webhook_id)
        where attempts = 0 and next_attempt_at is not null;
      create index webhook_delivery_failed on webhook_delivery (organization_id, webhook_id, event_id)
        where status = 'FAILED';

      -- Whatever happens to a person is a row of subscriber_event, so no writer can forget to tell it. Nearly all
      -- statements are about one organization: where it has no webhook, two looks at a small index are all it costs.
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
