"""The contract of a release, and which changes in a later contract break its callers.

releases/VERSION/ has contract.toml as it was released. A procedure's arguments and result columns are final: no
engine's callers survive every addition, see ARGUMENT and COLUMN. Only an open result may get more columns at its end.
New procedures, errors and roles break no caller.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from rowqueue.install import contract
from rowqueue.install.contract import Argument, Column, Contract, Procedure

# Why callers on an engine break when a procedure gets one more argument, even the last one and optional.
ARGUMENT = {"mysql": "CALL must pass every argument"}
# Why callers on an engine break when a result gets one more column, even the last one.
COLUMN = {
    "postgresql": "INSERT ... SELECT * has a column too many, and SELECT mq.NAME() of one column becomes a record",
    "firebird": "RETURNING_VALUES and INSERT ... SELECT * have a column too many",
    "sqlserver": "INSERT ... EXEC has a column too many",
}


def number(version: str) -> tuple[int, ...]:
    """A version as a comparable tuple. Raises ValueError when it is not X.Y.Z."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ValueError(f"version {version!r} must have the form 1.2.3")
    return tuple(map(int, version.split(".")))


def released(folder: Path) -> list[Path]:
    """The folders of all releases, from the first to the last."""
    return sorted((path.parent for path in folder.glob("*/contract.toml")), key=lambda path: number(path.name))


def refused(folder: Path, version: str, now: Contract) -> list[str]:
    """The breaking changes in `now` since the last release; [] for a new major version.

    `folder`: that of all releases. `version`: the version of `now`.
    """
    if not (all_released := released(folder)):
        return []
    last = all_released[-1]
    if number(version)[0] > number(last.name)[0]:
        return []
    return [f"{change} (released in {last.name})" for change in breaks(contract.read(last / "contract.toml"), now)]


def breaks(old: Contract, new: Contract) -> list[str]:
    """The changes that break callers of the old contract: one sentence each, with what to do."""
    shared = [*_errors(old, new), *_types(old, new)]
    found = [f"{change}; restore it, or release a new major version" for change in shared]
    for name, procedure in old.every.items():
        if name not in new.every:
            found.append(f"{name}: the procedure was removed; restore it, or release a new major version")
            continue
        remedy = "restore it, and add the new form under a name of its own, or release a new major version"
        found += [f"{name}: {change}; {remedy}" for change in _procedure(old, procedure, new, new.every[name])]
    return found


def _errors(old: Contract, new: Contract) -> Iterator[str]:
    for error in old.errors.values():
        if error.name not in new.errors:
            yield f"error {error.number} {error.name} was removed or renamed"
        elif (now := new.errors[error.name].number) != error.number:
            yield f"error {error.name} was {error.number} and is {now}"


def _types(old: Contract, new: Contract) -> Iterator[str]:
    for what, before, after in (("argument", old.arguments, new.arguments), ("result", old.results, new.results)):
        for engine, types in before.items():
            for name, released in types.items():
                if (now := after.get(engine, {}).get(name)) != released:
                    yield f"type {name} of {what}s on {engine} was {released} and is {now}"


def _procedure(old: Contract, before: Procedure, new: Contract, after: Procedure) -> Iterator[str]:
    engines = set(before.databases or old.arguments)
    yield from _names("argument", before.arguments, after.arguments, ARGUMENT, engines)
    now = {argument.name: argument for argument in after.arguments}
    for argument in before.arguments:
        if argument.name in now:
            yield from _argument(old, argument, new, now[argument.name])
    for argument in after.arguments[len(before.arguments) :]:
        if not argument.optional and argument.name not in {a.name for a in before.arguments}:
            yield f"argument {argument.name} was added and is required"
    yield from _names("result column", before.columns, after.columns, {} if before.open else COLUMN, engines)
    if before.open and not after.open:
        yield "its result was open, and later releases could add columns to it"
    types = {column.name: column.type for column in after.columns}
    for column in before.columns:
        if types.get(column.name, column.type) != column.type:
            yield f"result column {column.name} was {column.type} and is {types[column.name]}"
    if before.rows != after.rows:
        yield f"it returned {before.rows} rows and returns {after.rows}"
    for what, kept in (("error", after.errors), ("role", after.roles)):
        gone = set(before.errors if what == "error" else before.roles) - set(kept)
        yield from (f"{what} {name} was removed" for name in sorted(gone))
    for engine in sorted(engines - set(after.databases or new.arguments)):
        yield f"it is no longer on {engine}"


def _names(
    what: str,
    before: Sequence[Argument] | Sequence[Column],
    after: Sequence[Argument] | Sequence[Column],
    reasons: dict[str, str],
    engines: set[str],
) -> Iterator[str]:
    """Changes of names and their order. Callers pass arguments, and some read columns, by position."""
    old, new = [each.name for each in before], [each.name for each in after]
    for name, there in zip_longest(old, new[: len(old)]):
        if name not in new:
            yield f"{what} {name} was " + (f"renamed to {there}" if there and there not in old else "removed")
    if [name for name in new if name in old] != [name for name in old if name in new]:
        yield f"the {what}s were reordered: {', '.join(old)} became {', '.join(new)}"
    elif set(old) <= set(new) and new[: len(old)] != old:
        added = next(name for name, released in zip(new, old, strict=False) if name != released)
        yield f"{what} {added} was added before others"
    for name in new[len(old) :]:
        if name not in old and (broken := sorted(engines & reasons.keys())):
            why = "; ".join(f"{engine}: {reasons[engine]}" for engine in broken)
            yield f"{what} {name} was added, which breaks callers ({why})"


def _argument(old: Contract, before: Argument, new: Contract, after: Argument) -> Iterator[str]:
    if before.type != after.type:
        yield f"argument {before.name} was {before.type} and is {after.type}"
    if before.jsonb and not after.jsonb:
        yield f"argument {before.name} took jsonb on PostgreSQL"
    if before.optional and not after.optional:
        yield f"argument {before.name} was optional and is required"
    if before.optional and after.optional and (was := _default(before)) != (now := _default(after)):
        yield f"argument {before.name}: the default was {was!r} and is {now!r}"
    was, now = (known.limits.get(limit or "", "") for known, limit in ((old, before.limit), (new, after.limit)))
    if now and was != now and not (was and _holds(now, was)):
        yield f"argument {before.name}: the limit was {was or 'none'} and is {now}"


def _default(argument: Argument) -> str:
    """The meaning of NULL in the contract; the default itself is NULL on every engine."""
    found = re.search(r"(?:NULL:|at first) ([^;]+)", argument.meaning)
    return found[1].strip() if found else ""


def _holds(wide: str, narrow: str) -> bool:
    """Whether one limit of the contract allows every value that another allows. False for a limit without numbers."""
    spans = []
    for text in (wide, narrow):
        numbers = [int(digits.replace(",", "")) for digits in re.findall(r"-?\d[\d,]*", text)]
        if not numbers:
            return False
        spans.append((0 if text.startswith("up to") else min(numbers), max(numbers)))
    return spans[0][0] <= spans[1][0] and spans[1][1] <= spans[0][1]
