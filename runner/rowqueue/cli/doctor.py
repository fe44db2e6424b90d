"""`runner doctor`."""

from contextlib import suppress

from .. import install, output
from ..databases import Database, Forbidden, Row, SchemaMissing
from .common import Json, Url, group, opened

top = group()


@top.command()
def doctor(database: Url = None, json: Json = False) -> int:
    """Check the installation, the rights and the health of the queues.

    Exit code 3: run `runner apply`; 1: a check is bad.
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
        if wrong and installation["value"]:  # with nothing installed the list says nothing
            print()
            output.rows(wrong, ["kind", "name", "state"], False)
    if wrong or any(row["verdict"] == "bad" for row in rights):
        return SchemaMissing.exit_code
    return int(any(row["verdict"] == "bad" for row in health))


def _installation(database: Database) -> tuple[Row, list[Row]]:
    """The installation as a row like those of queue_health, and the files that are not as released."""
    name = "installation"
    try:
        files = install.status(database)
    except Forbidden as error:
        return _check(name, "warn", None, "", f"this role may not look: {error}"), []
    wrong = [{"kind": f.kind, "name": f.name, "state": f.state} for f in files if f.state != "ok"]
    unit = f"of {len(files)} files"
    if not wrong:
        return _check(name, "ok", len(files), unit, "every file is installed as released"), []
    missing = all(file.state == "missing" for file in files)
    detail = "the queue is not installed: runner apply" if missing else "runner apply puts it right"
    return _check(name, "bad", len(files) - len(wrong), unit, detail), wrong


def _rights(database: Database) -> list[Row]:
    """What is wrong with owners, definers and grants, a row each, and what the installer should know."""
    name = "rights"
    try:
        problems = install.rights_problems(database)
        warnings = database.warnings_about_installation()
    except Forbidden as error:
        return [_check(name, "warn", None, "", f"this role may not look: {error}")]
    found = [_check(name, "bad", None, "", f"{problem}: runner apply puts it right") for problem in problems]
    found = found or [_check(name, "ok", 0, "problems", "owners and grants are as released")]
    return found + [_check(name, "warn", None, "", warning) for warning in warnings]


def _cluster(database: Database) -> list[Row]:
    """What the server's cluster asks of those who use the queue; nothing on a server of its own."""
    cluster = database.cluster()
    if cluster is None:
        return []
    found = [_check("cluster", "ok", cluster.size, "nodes", cluster.detail)]
    return found + [_check("cluster", "warn", None, "", problem) for problem in cluster.problems]


def _check(name: str, verdict: str, value: int | None, unit: str, detail: str) -> Row:
    return {"name": name, "verdict": verdict, "value": value, "unit": unit, "detail": detail}
