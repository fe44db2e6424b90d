"""MySQL and MariaDB: recording a file, and the installation as a script for the mysql client."""

from collections.abc import Iterator, Sequence
from typing import Any

from ...install.contract import release
from ..base import AREA, GONE, PROCEDURE, RELEASE, Release, SqlFile
from ..files import created, quoted
from ..migrations import hashed, names
from .connection import SQL_MODE

SYSTEM = {"mysql", "sys", "information_schema", "performance_schema"}
# Any login can take a lock whose name it knows. So the name is random, in a row that only the installing user can read.
LOCK_ROW = "rowqueue"
INSTALL_LOCK = f"(SELECT comment FROM _yoyo_log WHERE id = '{LOCK_ROW}')"
INSTALL_SECONDS = 60


def parts(files: Sequence[SqlFile], since: Release | None) -> Iterator[str]:
    """See `Database.script`."""
    areas = ", ".join(f"'{file.name}'" for file in files if file.kind == AREA)
    listed = ", ".join(f"'{name}'" for name in names("mysql"))
    title = _UPGRADE.format(since.version, release()) if since else _INSTALLATION
    yield title + _SCRIPT_HEAD.replace("%names%", listed).replace("%areas%", areas.replace("'", "''"))
    if since:
        needed = " UNION ALL ".join(f"SELECT ''{area}'' AS name" for area in since.areas(files))
        yield _ONLY.format(version=since.version, areas=needed)
    yield YOYO_TABLES + _TAKE_LOCK
    for file in files:
        if file.text:
            yield f"-- {file.kind} {file.name}\n{text(file)}"
        if file.kind == "migration":
            yield _YOYO_ROW.format(name=file.name, hash=hashed(file.name))
        if file.kind == RELEASE:  # last: until then, the script can continue
            yield from (f"{statement};\n" for statement in FINGERPRINTS)
        if file.kind != GONE:
            yield RECORD % (f"'{file.name}'", f"'{file.kind}'", f"'{file.sha256}'") + ";\n"


def dropping(names: Sequence[str]) -> str:
    """See `Database.dropping`."""
    objects = [f"{prefix}{name}" for name in names for prefix in ("mq_", "imq_")]
    drops = [f"DROP PROCEDURE IF EXISTS {name};\n" for name in objects]
    lists = {"views": ", ".join(map(quoted, objects)), "names": ", ".join(map(quoted, names))}
    return "".join(drops) + _DROP_REST.format(**lists)


def text(file: SqlFile) -> str:
    """A file for the client. A procedure contains semicolons, is dropped first, and gets a comment if it is public."""
    found = created(file)
    body = file.text.rstrip()
    if file.kind != PROCEDURE or not found or found[0] != "PROCEDURE":
        return f"{body}\n"
    body = _PROCEDURE.format(name=found[1], text=body)
    return f"{body}\n" + (f"ALTER PROCEDURE {found[1]} COMMENT {quoted(file.comment)};\n" if file.comment else "")


_PROCEDURE = """\
DROP PROCEDURE IF EXISTS {name};
DELIMITER //
{text}//
DELIMITER ;"""


RECORD = """\
REPLACE INTO mq_installed (name, kind, sha256, fingerprint, applied_at)
VALUES (%s, %s, %s, NULL, UTC_TIMESTAMP(6))"""

FINGERPRINTS = (
    "CALL imq_object_fingerprint(@mq_fingerprints)",
    """\
UPDATE mq_installed AS i
INNER JOIN JSON_TABLE(@mq_fingerprints, '$[*]' COLUMNS (
    name varchar(200) CHARACTER SET utf8mb4 PATH '$[0]', fingerprint char(64) CHARACTER SET ascii PATH '$[1]'
)) AS f ON f.name = i.name
SET i.fingerprint = f.fingerprint
WHERE i.kind = 'procedure'""",
)


# yoyo's own tables as yoyo 9 makes them, for `yoyo apply` and `runner apply` to continue from.
YOYO_TABLES = """\
CREATE TABLE IF NOT EXISTS yoyo_lock (
    locked INT DEFAULT 1, ctime TIMESTAMP, pid INT NOT NULL, PRIMARY KEY (locked)
);
CREATE TABLE IF NOT EXISTS _yoyo_log (
    id VARCHAR(36), migration_hash VARCHAR(64), migration_id VARCHAR(255), operation VARCHAR(10),
    username VARCHAR(255), hostname VARCHAR(255), comment VARCHAR(255), created_at_utc TIMESTAMP, PRIMARY KEY (id)
);
INSERT IGNORE INTO _yoyo_log (id, migration_id, comment) VALUES ('rowqueue', 'rowqueue', LEFT(COALESCE(
    /*!80000 HEX(RANDOM_BYTES(16)), */ /*M!101001 HEX(RANDOM_BYTES(16)), */ SHA2(CONCAT(UUID(), RAND(), RAND()), 256)
), 32));
CREATE TABLE IF NOT EXISTS _yoyo_version (version INT NOT NULL PRIMARY KEY, installed_at_utc TIMESTAMP);
INSERT IGNORE INTO _yoyo_version VALUES (2, UTC_TIMESTAMP());
CREATE TABLE IF NOT EXISTS _yoyo_migration (
    migration_hash VARCHAR(64), migration_id VARCHAR(255), applied_at_utc TIMESTAMP, PRIMARY KEY (migration_hash)
);
"""


def make_yoyo_tables(cursor: Any) -> bool:
    """Create what is missing of yoyo's tables. False: they are those of a yoyo before 6, which yoyo itself upgrades."""
    cursor.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE()"
        " AND table_name = '_yoyo_migration'"
    )
    columns = cursor.fetchall()
    if columns and ("migration_hash",) not in [*columns]:
        return False
    for statement in filter(str.strip, YOYO_TABLES.split(";\n")):
        cursor.execute(statement)
    return True


_DROP_REST = """\
SET @mq_statement = NULL;
SELECT CONCAT('DROP VIEW ', GROUP_CONCAT(table_name)) INTO @mq_statement
FROM information_schema.views WHERE table_schema = DATABASE() AND table_name IN ({views});
SET @mq_statement = COALESCE(@mq_statement, 'DO 0');
PREPARE mq_statement FROM @mq_statement;
EXECUTE mq_statement;
DEALLOCATE PREPARE mq_statement;
DELETE FROM mq_installed WHERE kind = 'procedure' AND name IN ({names});
"""


_INSTALLATION = """\
-- rowqueue for MySQL and MariaDB: the whole installation, for the mysql client: mysql --comments DATABASE < this file.
-- It stops at the first error. DDL cannot be rolled back, but the script is safe to rerun.
"""

_UPGRADE = """\
-- rowqueue for MySQL and MariaDB: the upgrade from {} to {}, for the mysql client:
-- mysql --comments DATABASE < this file. It changes no other database. It stops at the first error. Run it again to
-- continue.
"""

_SCRIPT_HEAD = f"""\
SET NAMES utf8mb4;
SET SESSION sql_mode = '{SQL_MODE}', SESSION time_zone = '+00:00', SESSION autocommit = 1;
SET SESSION sql_safe_updates = 0;
-- A script can stop with a message only by an error: it selects a column that does not exist, named as the message.
SET @mq_statement = IF(LOWER(DATABASE()) IN ({", ".join(f"'{name}'" for name in sorted(SYSTEM))}),
    'SELECT `this database is the server''s own: name another one`', 'DO 0');
PREPARE mq_statement FROM @mq_statement;
EXECUTE mq_statement;
DEALLOCATE PREPARE mq_statement;
SELECT CASE WHEN COUNT(*) > 0 AND COALESCE(SUM(LOWER(name) = 'mq_installed'), 0) = 0
        THEN CONCAT('SELECT `another project has a ', MAX(CONCAT(kind, ' ', name)), '`')
        ELSE 'DO 0' END
INTO @mq_statement
FROM (
    SELECT 'table' AS kind, CAST(table_name AS char) AS name FROM information_schema.tables
    WHERE table_schema = DATABASE()
    UNION ALL
    SELECT 'routine', CAST(routine_name AS char) FROM information_schema.routines WHERE routine_schema = DATABASE()
) AS o
WHERE LOWER(name) IN (%names%);
PREPARE mq_statement FROM @mq_statement;
EXECUTE mq_statement;
DEALLOCATE PREPARE mq_statement;
SET @mq_unknown = NULL, @mq_statement = 'DO 0';
SELECT 'SELECT GROUP_CONCAT(name) INTO @mq_unknown FROM mq_installed WHERE kind = ''area'' AND name NOT IN (%areas%)'
INTO @mq_statement
FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'mq_installed';
PREPARE mq_statement FROM @mq_statement;
EXECUTE mq_statement;
DEALLOCATE PREPARE mq_statement;
SET @mq_statement = COALESCE(CONCAT('SELECT `this script lacks areas of the database: ', @mq_unknown, '`'), 'DO 0');
PREPARE mq_statement FROM @mq_statement;
EXECUTE mq_statement;
DEALLOCATE PREPARE mq_statement;
"""


_ONLY = """\
SET @mq_found = NULL, @mq_lacking = NULL, @mq_statement = 'SELECT `the queue is not installed in this database`';
SELECT 'SELECT (SELECT name FROM mq_installed WHERE kind = ''release'' ORDER BY applied_at DESC LIMIT 1),
    (SELECT GROUP_CONCAT(a.name) FROM ({areas}) AS a
    LEFT JOIN mq_installed AS i ON i.kind = ''area'' AND i.name = a.name WHERE i.name IS NULL)
    INTO @mq_found, @mq_lacking'
INTO @mq_statement
FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'mq_installed';
PREPARE mq_statement FROM @mq_statement;
EXECUTE mq_statement;
DEALLOCATE PREPARE mq_statement;
SET @mq_statement = CASE
    WHEN NOT @mq_found <=> '{version}'
        THEN CONCAT('SELECT `this script upgrades {version}; the database has ', COALESCE(@mq_found, 'no release'), '`')
    WHEN @mq_lacking IS NOT NULL THEN CONCAT('SELECT `the database lacks areas of this script: ', @mq_lacking, '`')
    ELSE 'DO 0'
END;
PREPARE mq_statement FROM @mq_statement;
EXECUTE mq_statement;
DEALLOCATE PREPARE mq_statement;
"""


_TAKE_LOCK = f"DO GET_LOCK({INSTALL_LOCK}, {INSTALL_SECONDS});\n"


_YOYO_ROW = """\
INSERT IGNORE INTO _yoyo_migration VALUES ('{hash}', '{name}', UTC_TIMESTAMP());
"""
