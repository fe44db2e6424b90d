"""Firebird: recording a file, its variants for later servers, and the installation as a script for isql."""

import hashlib
import re
from collections.abc import Iterator, Sequence

from ...install.contract import release
from ..base import AREA, GONE, PROCEDURE, Release, SqlFile
from ..files import commented, quoted
from ..migrations import hashed, hashes, names
from . import yoyo_tables
from .statements import is_module, is_there, statements

_ENGINE = "RDB$GET_CONTEXT('SYSTEM', 'ENGINE_VERSION')"
VERSION = f"CAST(LEFT({_ENGINE}, POSITION('.' IN {_ENGINE}) - 1) AS integer)"

RECORD = """\
UPDATE OR INSERT INTO mq_installed (name, kind, sha256, fingerprint, applied_at)
VALUES ({}, {}, {}, IIF({} = 'procedure', imq_object_fingerprint({}), NULL), mq_utc_now()) MATCHING (name)"""


def parts(files: Sequence[SqlFile], since: Release | None) -> Iterator[str]:
    """See `Database.script`."""
    migrations = ",\n            ".join(f"''{name} {sha256}''" for name, sha256 in hashes("firebird").items())
    areas = ", ".join(f"''{file.name}''" for file in files if file.kind == AREA)
    title = _UPGRADE.format(since.version, release()) if since else _INSTALLATION
    only = "    END\n"
    if since:
        needed = " UNION ALL ".join(f"SELECT ''{area}'' AS name FROM rdb$database" for area in since.areas(files))
        only = _ONLY.format(version=since.version, areas=needed)
    yield title + _SCRIPT_HEAD.format(unsuitable=unsuitable(), migrations=migrations, areas=areas, only=only)
    own = yoyo_tables.TABLES.items()
    yield from (_YOYO_TABLE.format(name=name, columns=_quoted(columns)) for name, columns in own)
    yield f"COMMIT^\n{yoyo_tables.VERSION.format(time='NULL')}^\nCOMMIT^\n\nSET TERM ; ^\n\n"
    for file in files:
        if file.text:
            yield from _migration(file) if file.kind == "migration" else _procedure(file)
    yield from (_record(file) for file in files if file.kind != GONE)
    yield _SCRIPT_END


def _migration(file: SqlFile) -> Iterator[str]:
    yield f"-- {file.kind} {file.name}\n\nSET TERM ^ ;\n\n"
    yield from (f"{_guarded(statement, file.name)}^\n\nCOMMIT^\n\n" for statement in statements(file.text))
    yield f"{_YOYO_ROW.format(hash=hashed(file.name), name=file.name)}^\nCOMMIT^\n\nSET TERM ; ^\n\n"


def _procedure(file: SqlFile) -> Iterator[str]:
    text = f"SET TERM ^ ;\n{file.text.rstrip()}^\nSET TERM ; ^\n" if is_module(file.text) else file.text
    # Unlike other DDL, an EXECUTE BLOCK is not committed automatically.
    text = text.replace("\nSET TERM ; ^\n", "\nSET TERM ; ^\n\nCOMMIT;\n")
    yield f"-- {file.kind} {file.name}\n{text.rstrip()}\n"
    # isql's transaction may have begun before the file ran, and then does not see its objects.
    yield from (f"COMMIT;\n{_variant(version, other)}" for version, other in variants(file))
    yield f"COMMIT;\n{comment(file)}COMMIT;\n" if comment(file) else "COMMIT;\n"


def dropping(names: Sequence[str]) -> str:
    """See `Database.dropping`."""
    objects = ", ".join(quoted(f"{prefix}{name.upper()}") for name in names for prefix in ("MQ_", "IMQ_"))
    return _DROP.format(objects=objects, names=", ".join(map(quoted, names)))


def comment(file: SqlFile) -> str:
    """The statement that stores the comment of a file's object in the catalog; '' when it has none."""
    found = commented(file)
    return "COMMENT ON {} {} IS {};\n".format(*found[:2], quoted(found[2])) if found else ""


def _record(file: SqlFile) -> str:
    of_version = [(version, sha256(text)) for version, text in variants(file)]
    whens = "".join(f"WHEN {VERSION} >= {version} THEN '{other}' " for version, other in reversed(of_version))
    value = f"CASE {whens}ELSE '{file.sha256}' END" if whens else f"'{file.sha256}'"
    name, kind = f"'{file.name}'", f"'{file.kind}'"
    return RECORD.format(name, kind, value, kind, name) + ";\n"


def variants(file: SqlFile) -> tuple[tuple[int, str], ...]:
    """The texts of a file for later servers, each with the first server version it is for.

    `/*!4 … */` is a comment before 4.0 and text from 4.0 on, as MySQL's conditional comments are.
    """
    if file.kind != PROCEDURE:
        return ()
    versions = sorted({int(found[1]) for found in _CONDITIONAL.finditer(file.text)})
    return tuple((version, _uncommented(file.text, version)) for version in versions)


_CONDITIONAL = re.compile(r"/\*!(\d+) (.*?) \*/", re.S)


def _uncommented(text: str, version: int) -> str:
    return _CONDITIONAL.sub(lambda found: found[2] if int(found[1]) <= version else found[0], text)


def _variant(version: int, text: str) -> str:
    """A block that runs the text for a later version if the server is that new; isql itself has no conditions."""
    blocks = "".join(
        f"    IF ({VERSION} >= {version}) THEN\n        EXECUTE STATEMENT '{_quoted(statement)}';\n"
        for statement in statements(text)
    )
    return f"SET TERM ^ ;\n\nEXECUTE BLOCK AS\nBEGIN\n{blocks}END^\n\nSET TERM ; ^\n"


def _guarded(statement: str, migration: str) -> str:
    """A statement of a migration as a block: it is skipped if its object exists or the whole migration is recorded."""
    text = re.sub(r"\A(?:\s|--.*\n)*", "", statement)
    recorded = f"""SELECT 1 FROM "_yoyo_migration" WHERE "migration_hash" = '{hashed(migration)}'"""
    unless = "".join(f" AND NOT EXISTS ({query})" for query in [is_there(statement)] if query)
    return (
        f"EXECUTE BLOCK AS\nBEGIN\n    IF (NOT EXISTS ({recorded}){unless}) THEN\n"
        f"        EXECUTE STATEMENT '{_quoted(text)}';\nEND"
    )


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def unsuitable() -> str:
    """A value of mon$database: why the database cannot have the queue; NULL if it can."""
    return _UNSUITABLE.replace("%names%", ", ".join(f"'{name.upper()}'" for name in names("firebird")))


_UNSUITABLE = """\
CASE WHEN EXISTS (SELECT 1 FROM rdb$relations WHERE rdb$relation_name IN ('PLG$SRP', 'PLG$USERS', 'PLG$SRP_VIEW'))
        THEN 'this is the security database of the server: create another one for the queue'
    WHEN mon$sql_dialect < 3
        THEN 'the database has SQL dialect 1 and the queue needs 3: create a new one, or gfix -sql_dialect 3'
    WHEN mon$page_size < 8192
        THEN 'the database has pages of ' || mon$page_size || ' bytes and the queue needs 8,192: gbak -b, '
            || 'then gbak -c -page_size 8192'
    WHEN mon$read_only = 1
        THEN 'the database is read-only: gfix -mode read_write'
    WHEN NOT EXISTS (SELECT 1 FROM rdb$relations WHERE rdb$relation_name = 'MQ_INSTALLED')
        THEN (SELECT FIRST 1 'another project has a ' || TRIM(kind) || ' ' || TRIM(name) || ' in this database: '
                || 'install the queue in another one'
            FROM (SELECT 'table' AS kind, rdb$relation_name AS name FROM rdb$relations
                UNION ALL
                SELECT 'procedure', rdb$procedure_name FROM rdb$procedures WHERE rdb$package_name IS NULL
                UNION ALL
                SELECT 'function', rdb$function_name FROM rdb$functions WHERE rdb$package_name IS NULL)
            WHERE name IN (%names%)) END"""


_INSTALLATION = """\
-- rowqueue for Firebird 3.0, 4.0 and 5.0: the whole installation, for isql:
-- isql -charset UTF8 -input this-file DATABASE. It stops at the first error. Run it again to continue. Run again after
-- its end, it repairs an installation of this release or upgrades an earlier one.
"""

_UPGRADE = """\
-- rowqueue for Firebird 3.0, 4.0 and 5.0: the upgrade from {} to {}, for isql:
-- isql -charset UTF8 -input this-file DATABASE. It changes no other database. It stops at the first error. Run it again
-- to continue.
"""

_SCRIPT_HEAD = """\
SET BAIL ON;
SET AUTODDL ON;
SET TERM ^ ;

-- A database that cannot hold the queue is refused first, with an error that shows the reason.
EXECUTE BLOCK AS
DECLARE v_reason varchar(300) CHARACTER SET UTF8;
DECLARE v_unknown varchar(300) CHARACTER SET UTF8;
DECLARE v_at timestamp;
BEGIN
    SELECT {unsuitable}
    FROM mon$database
    INTO v_reason;
    IF (v_reason IS NULL AND EXISTS (SELECT 1 FROM rdb$relations WHERE rdb$relation_name = 'MQ_INSTALLED')) THEN
    BEGIN
        EXECUTE STATEMENT 'SELECT MIN(name) FROM mq_installed WHERE kind = ''migration''
            AND name || '' '' || sha256 NOT IN ({migrations})' INTO v_unknown;
        IF (v_unknown IS NOT NULL) THEN
            v_reason = 'this script does not know migration ' || v_unknown || ': use that of a later release';
        EXECUTE STATEMENT 'SELECT LIST(name) FROM mq_installed WHERE kind = ''area''
            AND name NOT IN ({areas})' INTO v_unknown;
        IF (v_unknown IS NOT NULL) THEN
            v_reason = 'this script lacks areas that the database has: use runner sql --areas ' || v_unknown || ',...';
{only}    IF (v_reason IS NOT NULL) THEN
        v_at = CAST(LEFT(v_reason, 130) AS timestamp);
END^

"""


_ONLY = """\
        EXECUTE STATEMENT 'SELECT MAX(name) FROM
            (SELECT FIRST 1 name FROM mq_installed WHERE kind = ''release'' ORDER BY applied_at DESC)' INTO v_unknown;
        IF (v_unknown IS DISTINCT FROM '{version}') THEN
            v_reason = 'this script upgrades {version}, and the database has '
                || COALESCE(v_unknown, 'no whole release');
        EXECUTE STATEMENT 'SELECT LIST(TRIM(a.name)) FROM ({areas}) AS a
            WHERE a.name NOT IN (SELECT i.name FROM mq_installed AS i WHERE i.kind = ''area'')' INTO v_unknown;
        IF (v_unknown IS NOT NULL) THEN
            v_reason = COALESCE(v_reason, 'the database lacks areas of this script: ' || v_unknown);
    END
    ELSE
        v_reason = COALESCE(v_reason, 'the queue is not installed here, and this script upgrades {version}');
"""


_YOYO_TABLE = """\
EXECUTE BLOCK AS
BEGIN
    IF (NOT EXISTS (SELECT 1 FROM rdb$relations WHERE rdb$relation_name = '{name}')) THEN
        EXECUTE STATEMENT 'CREATE TABLE "{name}" ({columns})';
END^

"""


# In one transaction: dependencies are checked when it ends.
_DROP = """\
SET TERM ^ ;
EXECUTE BLOCK
AS
DECLARE v_drop varchar(200) CHARACTER SET UTF8;
BEGIN
    FOR
        SELECT 'DROP PROCEDURE ' || TRIM(rdb$procedure_name) FROM rdb$procedures
        WHERE rdb$package_name IS NULL AND rdb$procedure_name IN ({objects})
        UNION ALL
        SELECT 'DROP FUNCTION ' || TRIM(rdb$function_name) FROM rdb$functions
        WHERE rdb$package_name IS NULL AND rdb$function_name IN ({objects})
        UNION ALL
        SELECT 'DROP VIEW ' || TRIM(rdb$relation_name) FROM rdb$relations
        WHERE rdb$view_blr IS NOT NULL AND rdb$relation_name IN ({objects})
        INTO v_drop
    DO
        EXECUTE STATEMENT v_drop;
    DELETE FROM mq_installed WHERE kind = 'procedure' AND name IN ({names});
END^
SET TERM ; ^
"""


_YOYO_ROW = """\
UPDATE OR INSERT INTO "_yoyo_migration" ("migration_hash", "migration_id") VALUES ('{hash}', '{name}')
MATCHING ("migration_hash")"""


_SCRIPT_END = """\
UPDATE "_yoyo_version" SET "installed_at_utc" = mq_utc_now() WHERE "installed_at_utc" IS NULL;
UPDATE "_yoyo_migration" SET "applied_at_utc" = mq_utc_now() WHERE "applied_at_utc" IS NULL;
COMMIT;
"""
