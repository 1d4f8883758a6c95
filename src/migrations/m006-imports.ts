import { Migration } from '@mikro-orm/migrations'

/**
 * Uploaded lists of subscribers: the import with its checkpoint, its bytes while it runs, and the rows that it
 * rejected.
 */
export class M006Imports extends Migration {
  override up(): void {
    this.addSql(`
      create table subscriber_import (
        id uuid not null,
        organization_id uuid not null references organization,
        status text not null default 'UPLOADING' check (status in ('UPLOADING', 'PENDING', 'RUNNING', 'COMPLETED',
          'FAILED', 'CANCELED')),
        -- How the columns are read and what every row gets; actor is who requested the import.
        settings jsonb not null,
        actor jsonb not null,
        bytes bigint not null default 0,
        sha256 text,
        -- The checkpoint: everything before this byte is applied and counted.
        next_byte bigint not null default 0,
        rows int not null default 0,
        imported int not null default 0,
        updated int not null default 0,
        failed int not null default 0,
        error text,
        created_at timestamptz(3) not null default now(),
        started_at timestamptz(3),
        finished_at timestamptz(3),
        updated_at timestamptz(3) not null default now(),
        primary key (organization_id, id)
      );
      create trigger touch before update on subscriber_import for each row execute function touch_updated_at();
      create index subscriber_import_open on subscriber_import (updated_at) where status in ('PENDING', 'RUNNING');

      -- The uploaded file, in pieces of one size; deleted when the import ends.
      create table import_chunk (
        organization_id uuid not null,
        import_id uuid not null,
        first_byte bigint not null,
        content bytea not null,
        primary key (organization_id, import_id, first_byte),
        foreign key (organization_id, import_id) references subscriber_import (organization_id, id) on delete cascade
      );
      alter table import_chunk alter column content set storage external;

      -- Rejected rows as they are in the file, and why they were rejected.
      create table import_rejection (
        organization_id uuid not null,
        import_id uuid not null,
        row_number int not null,
        cells jsonb not null,
        error text not null,
        primary key (organization_id, import_id, row_number),
        foreign key (organization_id, import_id) references subscriber_import (organization_id, id) on delete cascade
      );
    `)
  }

  override down(): void {
    this.addSql('drop table import_rejection, import_chunk, subscriber_import;')
  }
}
