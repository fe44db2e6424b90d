"""PostgreSQL: recording a file, and the installation as a script for psql."""

import re
from collections.abc import Iterator, Sequence

from ...install.contract import release
from ..base import AREA, GONE, Release, SqlFile
from ..files import commented, quoted
from ..migrations import hashed, hashes

# The installation lock: a schema of this name that is never committed. Any user could take an advisory lock.
INSTALL_LOCK = "rowqueue_installing"


def parts(files: Sequence[SqlFile], since: Release | None) -> Iterator[str]:
    """See `Database.script`."""
    migrations = ",\n            ".join(f"('{name}', '{sha256}')" for name, sha256 in hashes("postgresql").items())
    areas = ", ".join(f"'{file.name}'" for file in files if file.kind == AREA)
    title = _UPGRADE.format(since.version, release()) if since else _INSTALLATION
    yield title + _SCRIPT_HEAD.replace("%migrations%", migrations).replace("%areas%", areas)
    if since:
        yield _ONLY.format(version=since.version, areas=", ".join(map(quoted, since.areas(files))))
    yield _YOYO_TABLES
    texts = {file: f"-- {file.kind} {file.name}\n{file.text.rstrip()}\n" for file in files if file.text}
    for file, text in texts.items():
        if file.kind == "migration":
            yield _MIGRATION.format(name=file.name, hash=hashed(file.name), text=text)
    yield "RESET client_min_messages;\n"
    yield from (text + comment(file) for file, text in texts.items() if file.kind != "migration")
    records = ",\n".join(f"    ('{file.kind}', '{file.name}', '{file.sha256}')" for file in files if file.kind != GONE)
    yield f"{_RECORD_HEAD}FROM (VALUES\n{records}\n) AS f (kind, name, sha256)\n{_RECORD_TAIL};\n"
    yield f"DROP SCHEMA {INSTALL_LOCK};\nCOMMIT;\n"


def dropping(names: Sequence[str]) -> str:
    """See `Database.dropping`."""
    return _DROP.format(names=", ".join(map(quoted, names)))


def comment(file: SqlFile) -> str:
    """The statement that stores the comment of a file's object in the catalog; '' when it has none."""
    found = commented(file)
    if found is None:
        return ""
    kind, name, text = found
    template = (
        _COMMENT_EACH if len(re.findall(rf"^CREATE .*{kind} {re.escape(name)}\(", file.text, re.M)) > 1 else _COMMENT
    )
    return template.format(kind=kind, name=name, text=quoted(text))


_COMMENT = "COMMENT ON {kind} {name} IS {text};\n"


# For functions that differ in the types of their arguments.
_COMMENT_EACH = """\
DO $$
DECLARE
    v_function regprocedure;
BEGIN
    FOR v_function IN
        SELECT p.oid FROM pg_proc AS p WHERE concat(p.pronamespace::regnamespace, '.', p.proname) = '{name}'
    LOOP
        EXECUTE format('COMMENT ON FUNCTION %s IS %L', v_function, {text});
    END LOOP;
END
$$;
"""


_RECORD_HEAD = """\
INSERT INTO mq.installed (kind, name, sha256, fingerprint, applied_at)
SELECT f.kind, f.name, f.sha256, CASE WHEN f.kind = 'procedure' THEN mq_internal.object_fingerprint(f.name) END, now()
"""


_RECORD_TAIL = """\
ON CONFLICT (name) DO UPDATE
SET kind = excluded.kind, sha256 = excluded.sha256, fingerprint = excluded.fingerprint,
    applied_at = excluded.applied_at"""


RECORD = f"{_RECORD_HEAD}FROM (VALUES (%s, %s, %s)) AS f (kind, name, sha256)\n{_RECORD_TAIL}"


# Views first: they may use the functions.
_DROP = """\
DO $$
DECLARE
    v_gone CONSTANT text[] := ARRAY[{names}];
    v_statement text;
BEGIN
    FOR v_statement IN
        SELECT format('DROP VIEW %s', c.oid::regclass) FROM pg_class AS c
        WHERE c.relnamespace = 'mq'::regnamespace AND c.relkind = 'v' AND c.relname = ANY (v_gone)
        UNION ALL
        SELECT format('DROP FUNCTION %s', p.oid::regprocedure) FROM pg_proc AS p
        WHERE p.pronamespace IN ('mq'::regnamespace, 'mq_internal'::regnamespace) AND p.proname = ANY (v_gone)
    LOOP
        EXECUTE v_statement;
    END LOOP;
    DELETE FROM mq.installed WHERE kind = 'procedure' AND name = ANY (v_gone);
END
$$;
"""


_INSTALLATION = """\
-- rowqueue for PostgreSQL: the whole installation, for psql. All or nothing. Run again, it repairs an installation of
-- this release or upgrades an earlier one.
"""

_UPGRADE = """\
-- rowqueue for PostgreSQL: the upgrade from {} to {}, for psql. All or nothing. It changes no other database.
"""

_SCRIPT_HEAD = f"""\
\\set ON_ERROR_STOP on
BEGIN;
CREATE SCHEMA {INSTALL_LOCK};
SET LOCAL client_min_messages = warning;
DO $$
DECLARE
    v_unknown text;
BEGIN
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'database % has the encoding %, but the queue needs UTF8',
            current_database(), current_setting('server_encoding')
            USING HINT = 'Create another database with CREATE DATABASE ... ENCODING ''UTF8'' TEMPLATE template0.';
    END IF;
    IF to_regclass('mq.installed') IS NOT NULL THEN
        SELECT min(i.name) INTO v_unknown FROM mq.installed AS i
        WHERE i.kind = 'migration' AND (i.name, i.sha256) NOT IN (VALUES
            %migrations%);
        IF v_unknown IS NOT NULL THEN
            RAISE EXCEPTION 'the database has migration %, which this script does not know', v_unknown
                USING HINT = 'Use the script of the release that installed it, or of a later one.';
        END IF;
        SELECT string_agg(i.name, ',' ORDER BY i.name) INTO v_unknown
        FROM mq.installed AS i WHERE i.kind = 'area' AND i.name NOT IN (%areas%);
        IF v_unknown IS NOT NULL THEN
            RAISE EXCEPTION 'the database has areas that this script does not contain: %', v_unknown
                USING HINT = 'Use a script that contains them: runner sql --areas ' || v_unknown || ',...';
        END IF;
        PERFORM set_config('rowqueue.applied', string_agg(i.name, ' '), true)
        FROM mq.installed AS i WHERE i.kind = 'migration';
    ELSIF EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname IN ('mq', 'mq_internal')) THEN
        RAISE EXCEPTION 'another project has a schema mq or mq_internal in this database'
            USING HINT = 'The queue needs both names: install it in another database, or rename that schema.';
    END IF;
END
$$;
"""


_ONLY = """\
DO $$
DECLARE
    v_found text;
BEGIN
    IF to_regclass('mq.installed') IS NULL THEN
        RAISE EXCEPTION 'the queue is not installed in database %', current_database()
            USING HINT = 'This script upgrades {version}. Install with the script of runner sql without --from.';
    END IF;
    SELECT i.name INTO v_found FROM mq.installed AS i WHERE i.kind = 'release' ORDER BY i.applied_at DESC LIMIT 1;
    IF v_found IS DISTINCT FROM '{version}' THEN
        RAISE EXCEPTION 'this script upgrades {version}, and the database has %', coalesce(v_found, 'no whole release')
            USING HINT = 'Use the script for its release: runner sql --from VERSION.';
    END IF;
    SELECT string_agg(a.name, ',' ORDER BY a.name) INTO v_found FROM unnest(ARRAY[{areas}]) AS a (name)
    WHERE NOT EXISTS (SELECT FROM mq.installed AS i WHERE i.kind = 'area' AND i.name = a.name);
    IF v_found IS NOT NULL THEN
        RAISE EXCEPTION 'the database lacks areas of this script: %', v_found
            USING HINT = 'Use a script for its areas: runner sql --from {version} --areas NAME,...';
    END IF;
END
$$;
"""


# yoyo's own tables as yoyo 9 makes them, for `yoyo apply` and `runner apply` to continue from.
_YOYO_TABLES = """\
SET LOCAL client_encoding = 'UTF8';
CREATE TABLE IF NOT EXISTS public.yoyo_lock (
    locked integer DEFAULT 1, ctime timestamp, pid integer NOT NULL, PRIMARY KEY (locked)
);
CREATE TABLE IF NOT EXISTS public._yoyo_log (
    id varchar(36), migration_hash varchar(64), migration_id varchar(255), operation varchar(10), username varchar(255),
    hostname varchar(255), comment varchar(255), created_at_utc timestamp, PRIMARY KEY (id)
);
CREATE TABLE IF NOT EXISTS public._yoyo_version (version integer NOT NULL PRIMARY KEY, installed_at_utc timestamp);
INSERT INTO public._yoyo_version VALUES (2, now() AT TIME ZONE 'UTC') ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS public._yoyo_migration (
    migration_hash varchar(64), migration_id varchar(255), applied_at_utc timestamp, PRIMARY KEY (migration_hash)
);
"""


_MIGRATION = """\
SELECT strpos(coalesce(current_setting('rowqueue.applied', true), ''), '{name}') = 0 AS is_new \\gset
\\if :is_new
{text}\
\\endif
INSERT INTO public._yoyo_migration VALUES ('{hash}', '{name}', now() AT TIME ZONE 'UTC') ON CONFLICT DO NOTHING;
"""
