"""What a database's catalog says of a procedure: its arguments and its result, in the words of the contract."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from rowqueue.install import contract
from rowqueue.install.contract import Contract, Procedure

Sql = Callable[..., list[dict[str, Any]]]


class Listed(NamedTuple):
    """An argument, or a result column. `optional`: it has a default, or None where no argument has one."""

    name: str
    type: str
    optional: bool | None = None


class Signature(NamedTuple):
    """`results` is None where the catalog has none: on MySQL, a call returns them, see `columns_of_a_call`."""

    arguments: list[Listed]
    results: list[Listed] | None


def _postgresql(sql: Sql, name: str) -> Signature:
    """A second function takes jsonb where the contract says so, and is otherwise the same."""
    rows = sql(
        "SELECT pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result"
        " FROM pg_proc WHERE pronamespace = 'mq'::regnamespace AND proname = %s"
        " ORDER BY pg_get_function_arguments(oid) LIKE '%%jsonb%%'",
        name,
    )
    row, changed = rows[0], rows[0]["arguments"]
    for argument in (a for a in contract.load().every[name].arguments if a.jsonb):
        changed = changed.replace(f"p_{argument.name} text", f"p_{argument.name} jsonb")
    assert rows[1:] == ([] if changed == row["arguments"] else [{**row, "arguments": changed}]), name
    words = [word for word in row["arguments"].split(", ") if word]
    arguments = [
        Listed(n.removeprefix("p_"), type.removesuffix(" DEFAULT NULL" + _cast(type)), " DEFAULT NULL" in type)
        for n, _, type in (word.partition(" ") for word in words if not word.startswith("OUT "))
    ]
    table = re.fullmatch(r"TABLE\((.*)\)", row["result"])
    found = table[1].split(", ") if table else [word[4:] for word in words if word.startswith("OUT ")]
    return Signature(arguments, [Listed(word[0].strip('"'), word[2]) for word in (w.partition(" ") for w in found)])


def _cast(type: str) -> str:
    """The cast that the server shows after a default: DEFAULT NULL::text."""
    found = re.search(r" DEFAULT NULL(::.*)", type)
    return found[1] if found else ""


def _mysql(sql: Sql, name: str) -> Signature:
    rows = sql(
        "SELECT parameter_name AS name, dtd_identifier AS type, parameter_mode AS mode"
        " FROM information_schema.parameters"
        " WHERE specific_schema = DATABASE() AND specific_name = %s ORDER BY ordinal_position",
        f"mq_{name}",
    )
    assert {row["mode"] for row in rows} <= {"IN"}
    # MariaDB and older versions show a display width: bigint(20).
    types = [re.sub(r"int\(\d+\)", "int", str(row["type"])).partition(" ")[0] for row in rows]
    return Signature(
        [Listed(row["name"].removeprefix("p_"), type) for row, type in zip(rows, types, strict=True)], None
    )


_FIREBIRD_TYPES = {7: "smallint", 8: "integer", 16: "bigint", 27: "double precision", 35: "timestamp", 37: "varchar"}


def _firebird(sql: Sql, name: str) -> Signature:
    rows = sql(
        "SELECT TRIM(LOWER(p.rdb$parameter_name)) AS name, p.rdb$parameter_type AS kind, f.rdb$field_type AS type,"
        " f.rdb$field_sub_type AS sub_type, f.rdb$character_length AS length,"
        " COALESCE(p.rdb$default_source, f.rdb$default_source) AS source"
        " FROM rdb$procedure_parameters AS p JOIN rdb$fields AS f ON f.rdb$field_name = p.rdb$field_source"
        " WHERE p.rdb$procedure_name = %s ORDER BY p.rdb$parameter_type, p.rdb$parameter_number",
        f"MQ_{name.upper()}",
    )

    def type_of(row: dict[str, Any]) -> str:
        if row["type"] == 261:
            return "blob sub_type text" if row["sub_type"] == 1 else f"blob sub_type {row['sub_type']}"
        length = f"({row['length']})" if row["type"] == 37 else ""
        return f"{_FIREBIRD_TYPES.get(row['type'], row['type'])}{length}"

    arguments = [
        Listed(row["name"].removeprefix("p_"), type_of(row), row["source"] is not None)
        for row in rows
        if not row["kind"]
    ]
    return Signature(arguments, [Listed(row["name"], type_of(row)) for row in rows if row["kind"]])


def _sqlserver(sql: Sql, name: str) -> Signature:
    """Its catalog does not say which arguments have a default: tests/static/test_tsql.py reads the files."""
    rows = sql(
        "SELECT p.name, t.name AS type, p.max_length AS length, p.scale FROM sys.parameters AS p"
        " INNER JOIN sys.types AS t ON t.user_type_id = p.user_type_id"
        " WHERE p.object_id = OBJECT_ID(%s) ORDER BY p.parameter_id",
        f"mq.{name}",
    )
    ends = {"nvarchar": "(max)", "datetime2": "(7)"}
    return Signature([Listed(row["name"].lstrip("@"), row["type"] + ends.get(row["type"], "")) for row in rows], None)


SIGNATURES = {"postgresql": _postgresql, "mysql": _mysql, "firebird": _firebird, "sqlserver": _sqlserver}

# Types of the contract that stand for several types of the engine.
FAMILIES = {
    "varchar or blob sub_type text": r"varchar\(\d+\)|blob sub_type text",
    "char, varchar or text of any length": "char|varchar|text",
    "an integer of any width": "integer",
}


def is_type(found: str, contracts: str) -> bool:
    """Whether a type of the catalog is the one of the contract, or one of those that it stands for."""
    return re.fullmatch(FAMILIES.get(contracts, re.escape(contracts)), found) is not None


def expected(known: Contract, database: str, procedure: Procedure) -> Signature:
    """What the contract says of a procedure."""
    arguments, results = known.arguments[database], known.results[database]
    return Signature(
        [Listed(a.name, arguments[a.kind], a.optional) for a in procedure.arguments],
        [Listed(c.name, results[c.type]) for c in procedure.columns],
    )


def columns_of_a_call(description: list[Any]) -> list[Listed]:
    """The result columns of a call on MySQL or MariaDB, from the driver's description."""
    from pymysql.constants import FIELD_TYPE as CODE  # type: ignore[import-untyped]

    types = {CODE.TINY: "integer", CODE.SHORT: "integer", CODE.LONG: "integer", CODE.LONGLONG: "integer"}
    types |= {CODE.STRING: "char", CODE.VAR_STRING: "varchar", CODE.DOUBLE: "double"}
    types |= dict.fromkeys((CODE.TINY_BLOB, CODE.BLOB, CODE.MEDIUM_BLOB, CODE.LONG_BLOB), "text")

    def type_of(code: int, length: int, scale: int) -> str:
        if code == CODE.DATETIME:
            return f"datetime({scale})"
        # A key that comes from a variable is a varchar on the wire; four bytes a character.
        is_key = code in (CODE.STRING, CODE.VAR_STRING) and length == 36 * 4
        return "char(36)" if is_key else types.get(code, f"type {code} of the driver")

    return [Listed(column[0], type_of(column[1], column[3], column[5])) for column in description]
