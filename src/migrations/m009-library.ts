import { Migration } from '@mikro-orm/migrations'

/** Parts of content: which snippets contain which, and the bytes of files. */
export class M009Library extends Migration {
  override up(): void {
    this.addSql(`
      -- Which snippets a snippet contains, stored beside its content, so that no document is read to follow them.
      create table snippet_use (
        organization_id uuid not null,
        snippet_id uuid not null,
        used_id uuid not null,
        primary key (organization_id, snippet_id, used_id),
        foreign key (organization_id, snippet_id) references snippet (organization_id, id) on delete cascade,
        foreign key (organization_id, used_id) references snippet (organization_id, id)
      );
      create index on snippet_use (organization_id, used_id);

      -- Returns the TypeIDs of the snippets in a document, or in the emails of a published workflow; null for none. The
      -- columns made of it answer where a snippet is used, so that no document is read for that.
      create function snippets_in(document jsonb) returns text[] language sql immutable parallel safe as $fn$
        select nullif(array(select distinct held #>> '{}' from jsonb_path_query(document,
          '$.** ? (@.type == "snippet").attrs.snippetId ? (@.type() == "string")') as held), '{}')
      $fn$;
      alter table campaign add column snippets text[]
        generated always as (case content_type when 'MAILY' then snippets_in(content) end) stored;
      create index campaign_snippets on campaign using gin (snippets) where snippets is not null;
      alter table automation_version add column snippets text[] generated always as (snippets_in(definition)) stored;
      create index automation_version_snippets on automation_version using gin (snippets) where snippets is not null;

      -- The default storage of files. The key is made from the bytes, so a file never changes.
      create table stored_file (
        organization_id uuid not null references organization,
        key text not null,
        bytes bytea not null,
        created_at timestamptz(3) not null default now(),
        primary key (organization_id, key)
      );
      -- Not compressed again, because images and the like are compressed already.
      alter table stored_file alter column bytes set storage external;
    `)
  }

  override down(): void {
    this.addSql(`
      drop table stored_file, snippet_use;
      alter table automation_version drop column snippets;
      alter table campaign drop column snippets;
      drop function snippets_in;
    `)
  }
}
