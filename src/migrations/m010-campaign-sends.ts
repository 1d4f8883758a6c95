import { Migration } from '@mikro-orm/migrations'

/** What sending a campaign keeps: what is said, to whom, and how far it is. */
export class M010CampaignSends extends Migration {
  override up(): void {
    this.addSql(`
      -- One row for each send: the campaign as it was when it fell due, which is what every recipient gets.
      create table campaign_send (
        id uuid not null,
        organization_id uuid not null,
        campaign_id uuid not null,
        -- The schedule that it comes from.
        number int not null,
        subject text not null,
        preview text,
        content jsonb not null,
        content_type text not null,
        -- Where its links lead, by position; null where that differs from person to person.
        targets text[] not null default '{}',
        sender_name text not null,
        sender_email text not null,
        reply_to text,
        recipient_filters jsonb not null,
        -- Everybody who is meant is in campaign_recipient.
        audience_frozen boolean not null default false,
        total int not null default 0,
        -- Recipients up to here have their email; moves in the transaction that writes the emails.
        enqueued_to uuid not null default '00000000-0000-0000-0000-000000000000',
        enqueued int not null default 0,
        -- Recipients that get no email at all.
        skipped int not null default 0,
        started_at timestamptz(3) not null default now(),
        finished_at timestamptz(3),
        -- When its workflow last worked on it.
        seen_at timestamptz(3) not null default now(),
        primary key (organization_id, id),
        unique (organization_id, campaign_id, number),
        foreign key (organization_id, campaign_id) references campaign (organization_id, id) on delete cascade
      ) with (fillfactor = 70);

      -- The frozen audience. The id of the email is given here, so that nobody can get two whatever crashes. Without a
      -- foreign key: a million rows are written at once, and rows that lead nowhere do no harm.
      create table campaign_recipient (
        organization_id uuid not null,
        campaign_id uuid not null,
        subscriber_id uuid not null,
        message_id uuid not null,
        -- Why there is no email.
        reason text,
        primary key (organization_id, campaign_id, subscriber_id)
      );
      create index on campaign_recipient (organization_id, campaign_id) where reason is not null;

      -- Where the link of an email at a position leads, or null.
      -- One row always; a set, because only such a function becomes part of the query that asks, at a third of the cost.
      create function link_target(organization uuid, message uuid, place int) returns setof text
      language sql stable parallel safe as $fn$
        select coalesce(
          (select link.targets[place + 1] from link where link.organization_id = organization and link.message_id = message),
          (select send.targets[place + 1] from message m join campaign_send send
            on send.organization_id = m.organization_id and send.id = m.version_id
            where m.organization_id = organization and m.id = message and m.class = 'CAMPAIGN'))
      $fn$;

      -- Campaigns that something has to happen to.
      create index campaign_underway on campaign (send_at) where status in ('SCHEDULED', 'SENDING');
    `)
  }

  override down(): void {
    this.addSql(`
      drop index campaign_underway;
      drop function link_target;
      drop table campaign_recipient, campaign_send;
    `)
  }
}
