"""SQL Server: recording a file, and the installation as a script for sqlcmd."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from ...install.contract import release
from ..base import AREA, GONE, GRANTS, RELEASE, Release, SqlFile
from ..files import commented, quoted, statements
from ..migrations import hashed, hashes
from .suitable import LEAST_LEVEL

INSTALL_SECONDS = 60
# Of this database. Any user could hold a lock of the default principal, public, and so keep an installation waiting.
_TAKE_LOCK = f"""\
DECLARE @got int, @principal sysname = IIF(IS_ROLEMEMBER(N'db_owner') = 1, N'db_owner', N'public');
EXEC @got = sp_getapplock @Resource = N'rowqueue', @LockMode = 'Exclusive', @LockOwner = 'Session',
    @LockTimeout = {INSTALL_SECONDS * 1000}, @DbPrincipal = @principal;"""


def parts(files: Sequence[SqlFile], since: Release | None) -> Iterator[str]:
    """See `Database.script`."""
    migrations = ",\n        ".join(f"(N'{name}', '{sha256}')" for name, sha256 in hashes("sqlserver").items())
    areas = ", ".join(f"N'{file.name}'" for file in files if file.kind == AREA)
    title = _UPGRADE.format(since.version, release()) if since else _INSTALLATION
    yield title + _SCRIPT_HEAD.replace("%migrations%", migrations).replace("%areas%", areas)
    if since:
        yield _ONLY.format(version=since.version, areas=", ".join(f"(N'{area}')" for area in since.areas(files)))
    yield _YOYO_TABLES
    for unit in units(files):
        if unit[0].kind == RELEASE:  # last: until then, the script can continue
            yield f"{FINGERPRINTS};\nGO\n"
        yield "BEGIN TRANSACTION;\nGO\n"
        yield from _parts_of(unit)
        yield "COMMIT TRANSACTION;\nGO\n"


def dropping(names: Sequence[str]) -> str:
    """See `Database.dropping`."""
    return _DROP.replace("%s", ", ".join(f"N'{name}'" for name in names))


def units(files: Iterable[SqlFile]) -> Iterator[list[SqlFile]]:
    """The files of each transaction. All grants are in one, because the first of their files revokes them."""
    for kind, found in groupby(files, key=lambda file: file.kind):
        same = list(found)
        yield from [same] if kind == GRANTS else ([file] for file in same)


def _parts_of(unit: list[SqlFile]) -> Iterator[str]:
    for file in unit:
        if file.kind == "migration":
            # One statement per batch, as yoyo runs them: no statement is compiled before the objects it names exist.
            yield f"-- {file.kind} {file.name}\n"
            unless = _UNLESS_RECORDED.format(hash=hashed(file.name))
            yield from (f"{unless}    EXEC (N{quoted(statement)});\nGO\n" for statement in statements(file.text))
            yield f"{unless}    {_YOYO_ROW.format(name=file.name, hash=hashed(file.name))}"
        else:
            # The server stores a procedure with the whole text of its batch, so the batch is the file and nothing else.
            yield "".join(f"{batch}\nGO\n" for batch in batches(file.text) if batch)
            yield f"{comment(file)}GO\n" if comment(file) else ""
        if file.kind != GONE:
            yield RECORD.replace("%s", "N'{}'").format(file.name, file.name, file.kind, file.sha256) + ";\nGO\n"


def comment(file: SqlFile) -> str:
    """The batch that stores the comment of a file's object in the catalog; '' when it has none."""
    found = commented(file)
    if not found:
        return ""
    kind, name, text = found
    level = f"N'SCHEMA', N'mq', N'{kind}', N'{name.removeprefix('mq.')}'"
    return f"""\
IF EXISTS (SELECT * FROM sys.fn_listextendedproperty(N'MS_Description', {level}, NULL, NULL))
    EXEC sys.sp_updateextendedproperty N'MS_Description', N{quoted(text)}, {level};
ELSE
    EXEC sys.sp_addextendedproperty N'MS_Description', N{quoted(text)}, {level};
"""


def batches(text: str) -> Iterator[str]:
    """The batches of a file: a line with only GO, between two of them, ends the first."""
    for batch in re.split(r"^GO[ \t]*$", text, flags=re.M | re.I):
        if batch.strip():
            yield batch.strip("\n")


TAKE_LOCK = f"""\
{_TAKE_LOCK}
SELECT @got AS got"""

RECORD = """\
DELETE FROM mq.installed WHERE name = %s;
INSERT INTO mq.installed (name, kind, sha256, fingerprint, applied_at) VALUES (%s, %s, %s, NULL, SYSUTCDATETIME())"""

FINGERPRINTS = "UPDATE mq.installed SET fingerprint = mq_internal.object_fingerprint(name) WHERE kind = 'procedure'"


_DROP = """\
DECLARE @drop nvarchar(max) = N'';
SELECT @drop = CONCAT(@drop, N'DROP ',
    CASE RTRIM(type) WHEN 'P' THEN N'PROCEDURE' WHEN 'V' THEN N'VIEW' ELSE N'FUNCTION' END,
    N' ', SCHEMA_NAME(schema_id), N'.', QUOTENAME(name), N'; ')
FROM sys.objects
WHERE schema_id IN (SCHEMA_ID(N'mq'), SCHEMA_ID(N'mq_internal')) AND type IN ('P', 'V', 'FN', 'IF', 'TF')
    AND name IN (%s);
EXEC (@drop);
DELETE FROM mq.installed WHERE kind = 'procedure' AND name IN (%s);"""


_INSTALLATION = """\
-- rowqueue for SQL Server 2016 SP1 and later and Azure SQL: the whole installation, for sqlcmd:
-- sqlcmd -b -f 65001 -d DATABASE -i this-file. It stops at the first error. Run it again to continue. Run again
-- after its end, it repairs an installation of this release or upgrades an earlier one.
"""

_UPGRADE = """\
-- rowqueue for SQL Server 2016 SP1 and later and Azure SQL: the upgrade from {} to {}, for sqlcmd:
-- sqlcmd -b -f 65001 -d DATABASE -i this-file. It changes no other database. It stops at the first error. Run it again
-- to continue.
"""

# sqlcmd has QUOTED_IDENTIFIER off, and a procedure keeps the settings with which it was created.
_SCRIPT_HEAD = f"""\
:on error exit
SET ANSI_NULLS, ANSI_PADDING, ANSI_WARNINGS, ARITHABORT, CONCAT_NULL_YIELDS_NULL, QUOTED_IDENTIFIER ON;
SET NUMERIC_ROUNDABORT OFF;
SET IMPLICIT_TRANSACTIONS OFF;
SET XACT_ABORT ON;
SET NOCOUNT ON;
GO
IF (SELECT compatibility_level FROM sys.databases WHERE name = DB_NAME()) < {LEAST_LEVEL}
    THROW 50000, N'the queue needs the compatibility level {LEAST_LEVEL}: SQL Server 2016 SP1 or later', 1;
{_TAKE_LOCK}
IF @got < 0
    THROW 50000, N'another installation is running in this database', 1;
IF OBJECT_ID(N'mq.installed', N'U') IS NULL
BEGIN
    IF SCHEMA_ID(N'mq') IS NOT NULL OR SCHEMA_ID(N'mq_internal') IS NOT NULL
        THROW 50000, N'another project has a schema mq or mq_internal: install the queue in another database', 1;
END
ELSE
BEGIN
    DECLARE @why nvarchar(2000);
    SELECT @why = CONCAT(N'the database has migration ', MIN(i.name), N', which this script does not know: ',
        N'use the script of the release that installed it, or of a later one')
    FROM mq.installed AS i
    LEFT JOIN (VALUES
        %migrations%
    ) AS k (name, sha256) ON k.name = i.name AND k.sha256 = i.sha256
    WHERE i.kind = 'migration' AND k.name IS NULL
    HAVING COUNT(*) > 0;
    SELECT @why = CONCAT(N'the database has an area that this script does not contain: ', MIN(name),
        N': use a script that contains it: runner sql --areas')
    FROM mq.installed
    WHERE kind = 'area' AND name NOT IN (%areas%)
    HAVING COUNT(*) > 0;
    IF @why IS NOT NULL
        THROW 50000, @why, 1;
END;
GO
"""


_ONLY = """\
IF OBJECT_ID(N'mq.installed', N'U') IS NULL
    THROW 50000, N'the queue is not installed in this database, and this script upgrades {version}', 1;
DECLARE @found nvarchar(400), @why nvarchar(2000);
SELECT TOP (1) @found = name FROM mq.installed WHERE kind = 'release' ORDER BY applied_at DESC;
IF @found IS NULL OR @found <> N'{version}'
    SET @why = CONCAT(N'this script upgrades {version}, and the database has ', COALESCE(@found, N'no whole release'));
ELSE
    SELECT @why = CONCAT(N'the database lacks areas of this script: ', MIN(a.name), N', ...')
    FROM (VALUES {areas}) AS a (name)
    LEFT JOIN mq.installed AS i ON i.kind = 'area' AND i.name = a.name
    WHERE i.name IS NULL
    HAVING COUNT(*) > 0;
IF @why IS NOT NULL
    THROW 50000, @why, 1;
GO
"""


# yoyo's own tables as yoyo 9 makes them, for `yoyo apply` and `runner apply` to continue from.
_YOYO_TABLES = """\
IF OBJECT_ID(N'dbo.yoyo_lock', N'U') IS NULL
    CREATE TABLE dbo.yoyo_lock (locked int DEFAULT 1, ctime datetime2, pid int NOT NULL, PRIMARY KEY (locked));
IF OBJECT_ID(N'dbo._yoyo_log', N'U') IS NULL
    CREATE TABLE dbo._yoyo_log (
        id varchar(36), migration_hash varchar(64), migration_id varchar(255), operation varchar(10),
        username varchar(255), hostname varchar(255), comment varchar(255), created_at_utc datetime2, PRIMARY KEY (id)
    );
IF OBJECT_ID(N'dbo._yoyo_version', N'U') IS NULL
    CREATE TABLE dbo._yoyo_version (version int NOT NULL PRIMARY KEY, installed_at_utc datetime2);
IF OBJECT_ID(N'dbo._yoyo_migration', N'U') IS NULL
    CREATE TABLE dbo._yoyo_migration (
        migration_hash varchar(64), migration_id varchar(255), applied_at_utc datetime2, PRIMARY KEY (migration_hash)
    );
GO
IF NOT EXISTS (SELECT * FROM dbo._yoyo_version)
    INSERT INTO dbo._yoyo_version VALUES (2, SYSUTCDATETIME());
GO
"""


# A migration and its record are one transaction. A statement that must not run again is not even compiled.
_UNLESS_RECORDED = """\
IF NOT EXISTS (SELECT * FROM dbo._yoyo_migration WHERE migration_hash = '{hash}')
"""

_YOYO_ROW = """\
INSERT INTO dbo._yoyo_migration VALUES ('{hash}', '{name}', SYSUTCDATETIME());
GO
"""
