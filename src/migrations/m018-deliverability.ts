import { Migration } from '@mikro-orm/migrations'

/**
 * The deliverability of each domain: outcomes to count, the totals made of them, and emails that wait to count as
 * delivered.
 */
export class M018Deliverability extends Migration {
  override up(): void {
    this.addSql(`
      -- Emails that got an outcome, one row for each statement that recorded it, however many they are, so that sending
      -- pays almost nothing for it. Rows are deleted once they are counted.
      create table outcome_batch (
        organization_id uuid not null,
        id uuid not null default new_id(),
        kind text not null,
        messages uuid[] not null,
        primary key (organization_id, id)
      );

      create function note_outcomes() returns trigger language plpgsql as $fn$
      begin
        insert into outcome_batch (organization_id, kind, messages)
        select organization_id, kind, array_agg(id) from (
          (select organization_id, id, status::text as kind from new_rows
            where status in ('SENT', 'BOUNCED', 'COMPLAINED', 'FAILED')
            except select organization_id, id, status from old_rows)
          union all
          (select organization_id, id, 'OPENED' from new_rows where opened_at is not null
            except select organization_id, id, 'OPENED' from old_rows where opened_at is not null)
        ) changed group by 1, 2;
        return null;
      end $fn$;
      create trigger outcomes after update on message referencing old table as old_rows new table as new_rows
        for each statement execute function note_outcomes();

      -- Emails that count as delivered when nothing has come back by due_at.
      create table delivery_due (
        organization_id uuid not null,
        id uuid not null default new_id(),
        due_at timestamptz(3) not null,
        messages uuid[] not null,
        primary key (organization_id, id)
      );
      create index on delivery_due (due_at);

      -- The mail service that receives for a domain, according to its MX; the same for every organization. family is
      -- null when no name server answered.
      create table receiver (
        domain text primary key,
        family text,
        checked_at timestamptz(3) not null default now()
      );

      -- Totals by the hour in which emails were sent, or by the moment at which the domain was resumed within that
      -- hour. One writer at a time.
      create table domain_total (
        organization_id uuid not null,
        domain_id uuid not null,
        stream text not null check (stream in ('MARKETING', 'TRANSACTIONAL')),
        at timestamptz(3) not null,
        family text not null,
        -- Emails that a server accepted or refused.
        emails int not null,
        bounced int not null,
        failed int not null,
        complained int not null,
        -- Emails that report being opened, and those that were opened.
        tracked int not null,
        opened int not null,
        primary key (organization_id, domain_id, stream, at, family),
        foreign key (organization_id, domain_id) references domain (organization_id, id) on delete cascade
      ) with (fillfactor = 70);
      create index on domain_total (at);
      -- For receivers whose family was not looked up yet; until then it is "@" and their domain.
      create index domain_total_stranger on domain_total (organization_id, family) where family like '@%';

      -- The streams of email that a domain does not send until somebody resumes it.
      create table sending_stop (
        organization_id uuid not null,
        domain_id uuid not null,
        stream text not null check (stream in ('MARKETING', 'TRANSACTIONAL')),
        -- The spellings of the domain in a From address.
        names text[] not null,
        reason text not null check (reason in ('BOUNCES', 'COMPLAINTS')),
        days int not null,
        emails int not null,
        counted int not null,
        stopped_at timestamptz(3) not null default now(),
        primary key (organization_id, domain_id, stream),
        foreign key (organization_id, domain_id) references domain (organization_id, id) on delete cascade
      );
      alter table domain add column resumed_at timestamptz(3);

      -- Returns the stopped domain that makes an email from this address wait, or null.
      create function stopped_by(organization uuid, is_marketing boolean, address text) returns uuid
      language sql stable parallel safe as $fn$
        select s.domain_id from sending_stop s where s.organization_id = organization
          and s.stream = case when is_marketing then 'MARKETING' else 'TRANSACTIONAL' end
          and lower(split_part(address, '@', -1)) = any (s.names)
      $fn$;
    `)
  }

  override down(): void {
    this.addSql(`
      drop function stopped_by;
      alter table domain drop column resumed_at;
      drop table sending_stop, domain_total, receiver, delivery_due;
      drop trigger outcomes on message;
      drop function note_outcomes;
      drop table outcome_batch;
    `)
  }
}
