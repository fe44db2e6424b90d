"""`runner doctor`."""

from contextlib import suppress

from .. import install, output
from ..databases import Database, Forbidden, Row, SchemaMissing
from .common import Json, Url, group, opened

top = group()


@top.command()
def doctor(database: Url = None, json: Json = False) -> int:
    """Check the installation, the privileges and the health of the queues.

    Exit code 3: run `runner apply`. 1: a check is bad.
    """
    with opened(database) as target:
        installation, wrong = _installation(target)
        rights = _rights(target) if installation["value"] else []
        cluster = _cluster(target)
        health: list[Row] = []
        session = target.connect("runner doctor")
        try:
            with suppress(SchemaMissing):
                health = session.call("queue_health")
        finally:
            session.close()
    found = [installation, *rights, *cluster, *health]
    if json:
        output.rows([*found, *wrong], [], True)
    else:
        output.rows(found, ["name", "verdict", "value", "unit", "detail"], False)
        if wrong and installation["value"]:  # if nothing is installed, a list of all files does not help
            print()
            output.rows(wrong, ["kind", "name", "state"], False)
    if wrong or any(row["verdict"] == "bad" for row in rights):
        return SchemaMissing.exit_code
    return int(any(row["verdict"] == "bad" for row in health))


def _installation(database: Database) -> tuple[Row, list[Row]]:
    """The installation as a row like those of queue_health, and the files that differ from this release."""
    name = "installation"
    try:
        files = install.status(database)
    except Forbidden as error:
        return _check(name, "warn", None, "", f"this user may not check it: {error}"), []
    wrong = [{"kind": f.kind, "name": f.name, "state": f.state} for f in files if f.state != "ok"]
    unit = f"of {len(files)} files"
    if not wrong:
        return _check(name, "ok", len(files), unit, "all files are installed as released"), []
    missing = all(file.state == "missing" for file in files)
    detail = "the queue is not installed: run `runner apply`" if missing else "run `runner apply` to repair it"
    return _check(name, "bad", len(files) - len(wrong), unit, detail), wrong


def _rights(database: Database) -> list[Row]:
    """A row for each wrong owner, definer or grant, and the warnings about the installation."""
    name = "rights"
    try:
        problems = install.rights_problems(database)
        warnings = database.warnings_about_installation()
    except Forbidden as error:
        return [_check(name, "warn", None, "", f"this user may not check it: {error}")]
    found = [_check(name, "bad", None, "", f"{problem}: run `runner apply` to repair it") for problem in problems]
    found = found or [_check(name, "ok", 0, "problems", "owners and grants are as released")]
    return found + [_check(name, "warn", None, "", warning) for warning in warnings]


def _cluster(database: Database) -> list[Row]:
    """The server's cluster and what its users must know; [] for a single server."""
    cluster = database.cluster()
    if cluster is None:
        return []
    found = [_check("cluster", "ok", cluster.size, "nodes", cluster.detail)]
    return found + [_check("cluster", "warn", None, "", problem) for problem in cluster.problems]


def _check(name: str, verdict: str, value: int | None, unit: str, detail: str) -> Row:
    return {"name": name, "verdict": verdict, "value": value, "unit": unit, "detail": detail}
