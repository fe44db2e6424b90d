"""The indexes that migrations create: queue_health compares them with those in the catalog."""

import re

_TABLE = r"(?:mq_internal\.|mq\.)?(?P<{}>\w+)"
_FOUND = re.compile(
    r"--.*"
    r"|CREATE (?:\w+ )*TYPE (?P<type>\S+)"
    rf"|(?:CREATE (?:\w+ )*TABLE|ALTER TABLE) (?:IF NOT EXISTS )?{_TABLE.format('table')}"
    rf"|CREATE (?:\w+ )*INDEX (?:IF NOT EXISTS )?(?P<index>\w+)\s+ON {_TABLE.format('on')}"
    r"|DROP (?:INDEX|CONSTRAINT) (?:mq\.)?(?P<dropped>\w+)"
    r"|CONSTRAINT (?P<constraint>\w+) (?:PRIMARY KEY|UNIQUE|FOREIGN KEY)"
    r"|(?P<primary>PRIMARY KEY)"
    r"|\b(?:KEY|INDEX) (?P<key>\w+) \("
    r"|^ +(?!CONSTRAINT\b)(?P<column>\w+) [^\n,]*\bUNIQUE\b",
    re.M,
)


def indexes(migration: str, unnamed: str) -> list[str]:
    """The indexes that the text of a migration creates, each with its table before it.

    `unnamed`: what the server calls a primary key without a name, with {} for its table.
    """
    found: dict[str, str] = {}
    table = ""
    for match in _FOUND.finditer(migration):
        part, name = match.lastgroup, match[match.lastgroup] if match.lastgroup else ""
        if part in ("table", "type"):
            table = name if part == "table" else ""
        elif part == "on":
            found[match["index"]] = f"{name}.{match['index']}"
        elif part == "dropped":
            found.pop(name, None)
        elif table and part:
            if part == "primary":
                name = unnamed.format(table)
            elif part == "column":
                name = f"{table}_{name}_key"
            found[name if part != "primary" else f"{table}.{name}"] = f"{table}.{name}"
    return list(found.values())
