"""Babelfish, a PostgreSQL that speaks the protocol of SQL Server: the tests use it in place of SQL Server."""

import re

from .connection import Connection


def is_babelfish(connection: Connection) -> bool:
    return connection.command("SELECT CAST(SERVERPROPERTY('BabelfishVersion') AS nvarchar(128)) AS v") is not None


def replacing(batch: str) -> list[str]:
    """A batch rewritten for Babelfish, which has no CREATE OR ALTER; the grants are made again after every change.

    Babelfish cannot grant VIEW DEFINITION, and shows definitions to everyone. It cannot run a procedure as its owner,
    and it counts characters, not UTF-16 units, in every collation.
    """
    if "GRANT VIEW DEFINITION" in batch:
        return []
    batch = batch.replace("Latin1_General_100_CI_AS_SC", "Latin1_General_100_BIN2")
    batch = batch.replace("WITH EXECUTE AS OWNER\n", "")
    # A procedure cannot return an nvarchar(max).
    batch = batch.replace("nvarchar(max) OUTPUT", "ntext OUTPUT")
    # It has no half surrogate pairs, and LIKE finds them everywhere.
    batch = re.sub(r"WHEN CONCAT\(N'\.', o\.\[key\].*?THEN 0\n", "", batch, flags=re.S)
    # It measures texts in bytes of UTF-8, and a comparison does not pad the shorter one.
    batch = batch.replace("DATALENGTH(@start) / 2", "LEN(@start + N'.') - 1")
    batch = batch.replace("@start + REPLICATE(NCHAR(1), 400 - @units)", "@start")
    # It leaves the values of OPENJSON escaped.
    batch = batch.replace(
        "j.value COLLATE Latin1_General_100_BIN2 AS line",
        "REPLACE(REPLACE(REPLACE(REPLACE(j.value, N'\\\\', NCHAR(1)), N'\\\"', N'\"'), N'\\/', N'/'), NCHAR(1), N'\\')"
        " COLLATE Latin1_General_100_BIN2 AS line",
    )
    # It reads a time with its zone in one form only, and only without TRY.
    batch = batch.replace(
        "TRY_CAST(REPLACE(o.value, N'Z', N'+00:00') AS datetimeoffset(7))",
        "CAST(REPLACE(REPLACE(REPLACE(o.value, N'Z', N'+00:00'), N'+', N' +'), N'T', N' ') AS datetimeoffset(7))",
    )
    # After a query it refuses another isolation level; its reads never wait.
    batch = batch.replace("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;", "SET NOCOUNT ON;")
    # It has no security policies.
    batch = batch.replace(
        "sys.security_predicates AS p", "(SELECT 0 AS object_id, 0 AS target_object_id, 1 AS predicate_type) AS p"
    )
    batch = batch.replace("sys.security_policies AS s", "(SELECT 0 AS object_id, 0 AS is_enabled) AS s")
    # It has the same time zone names, but no list of them.
    batch = batch.replace(
        "sys.time_zone_info AS z",
        "(SELECT @zone AS name WHERE sys.babelfish_timezone_mapping(LOWER(@zone)) <> N'NULL') AS z",
    )
    # It has no level of compatibility.
    batch = batch.replace("(SELECT compatibility_level FROM sys.databases WHERE name = DB_NAME())", "130")
    # Its schema dbo belongs to a role.
    batch = batch.replace("q.principal_id <> COALESCE(t.principal_id, s.principal_id)", "1 = 0")
    found = re.search(r"^CREATE OR ALTER (\w+) ([\w.\[\]]+)", batch, re.M)
    if not found:
        return [batch]
    created = f"{batch[: found.start()]}CREATE {found[1]} {found[2]}{batch[found.end() :]}"
    return [f"DROP {found[1]} IF EXISTS {found[2]}", created]
