import { Migration } from '@mikro-orm/migrations'

/**
 * The monthly email limits of organizations, and the address that email is sent from when its domain is no longer
 * verified.
 */
export class M020Quotas extends Migration {
  override up(): void {
    this.addSql(`
      -- Returns the address that an email from this address is sent from: the same address when its domain is VERIFIED,
      -- else the same name at the first fallback domain that has not stopped. A stopped domain has no fallback:
      -- whatever stopped it would go on with the next one. No row means that the email may not be sent.
      create function leave_from(organization uuid, address text, domain_status text)
      returns table (email text, stood_in_for text) language sql stable parallel safe as $fn$
        select address, null::text where domain_status = 'VERIFIED'
        union all
        (select regexp_replace(address, '[^@]*$', d.domain), address from domain d
          where domain_status <> 'VERIFIED' and d.organization_id = organization and d.status = 'VERIFIED'
            and d.fallback_priority is not null and not exists (select from sending_stop stop
              where stop.organization_id = d.organization_id
                and (stop.domain_id = d.id or lower(split_part(address, '@', -1)) = any (stop.names)))
          order by d.fallback_priority, d.id limit 1)
      $fn$;

      -- Emails of organizations with a limit, by month (UTC). Backends count in slots of their own, so that none waits
      -- for another; readers add the slots up.
      create table email_count (
        organization_id uuid not null references organization,
        month date not null,
        slot smallint not null,
        emails int not null,
        primary key (organization_id, month, slot)
      ) with (fillfactor = 50);

      -- How many emails a campaign has taken from the limit of which month; unused ones are given back.
      alter table campaign_send add column quota_month date, add column quota_taken int not null default 0;

      create function quota_month() returns date language sql stable parallel safe as $fn$
        select date_trunc('month', now() at time zone 'utc')::date
      $fn$;

      -- Returns the limit of emails per month; null means no limit.
      create function email_limit(organization uuid) returns int language sql stable parallel safe as $fn$
        select nullif(coalesce((o.custom_limits ->> 'emailsPerMonth')::int,
          case o.plan when 'FREE' then 3000 when 'PREMIUM' then 100000 else 0 end), 0)
        from organization o where o.id = organization
      $fn$;

      -- Returns the emails of this month; null when they are not counted, because there is no limit or nothing was sent
      -- yet.
      create function emails_counted(organization uuid) returns int language sql volatile as $fn$
        select sum(c.emails)::int from email_count c where c.organization_id = organization and c.month = quota_month()
      $fn$;

      create function count_emails(organization uuid, of_month date, wanted int) returns void language sql as $fn$
        insert into email_count as counted (organization_id, month, slot, emails)
          values (organization, of_month, pg_backend_pid() % 64, wanted)
          on conflict (organization_id, month, slot) do update set emails = counted.emails + excluded.emails
      $fn$;

      -- Returns what take_emails would return for one email, but takes none.
      create function refuse_emails(organization uuid) returns jsonb language sql volatile as $fn$
        select jsonb_build_object('allowed', allowed, 'left', 0) from email_limit(organization) allowed
        where emails_counted(organization) >= allowed
      $fn$;

      -- Takes so many emails from the limit of this month and returns null, or takes none and returns {allowed, left}.
      -- Far from the limit nobody waits. Near it, and for many emails at once, callers go one after the other, so that
      -- the limit is exact: emails that others took and did not commit yet are fewer than the distance to the limit.
      -- The first call of a month counts the emails that there are already, which matters when a limit is new.
      create function take_emails(organization uuid, wanted int) returns jsonb language plpgsql as $fn$
      declare
        far constant int := 10000;
        few constant int := 100;
        allowed int := email_limit(organization);
        counted int;
      begin
        if allowed is null then
          return null;
        end if;
        counted := emails_counted(organization);
        if wanted <= few and counted is not null and allowed - counted - wanted >= far then
          perform pg_advisory_xact_lock_shared(7305120, hashtext(organization::text));
        else
          perform pg_advisory_xact_lock(7305120, hashtext(organization::text));
          counted := emails_counted(organization);
          if counted is null then
            select count(*)::int into counted from message m where m.organization_id = organization
              and m.id >= id_floor(quota_month()::timestamp at time zone 'utc') and m.class <> 'TEST';
            perform count_emails(organization, quota_month(), counted);
          end if;
          if counted + wanted > allowed then
            return jsonb_build_object('allowed', allowed, 'left', greatest(0, allowed - counted));
          end if;
        end if;
        perform count_emails(organization, quota_month(), wanted);
        return null;
      end $fn$;
    `)
  }

  override down(): void {
    this.addSql(`
      drop function take_emails, refuse_emails, count_emails, emails_counted, email_limit, quota_month, leave_from;
      alter table campaign_send drop column quota_month, drop column quota_taken;
      drop table email_count;
    `)
  }
}
