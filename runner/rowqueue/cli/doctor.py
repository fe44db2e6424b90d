"""`runner doctor`."""

from collections.abc import Callable
from functools import partial

from ..databases import Database, NotAllowed, Row, SchemaMissing, how_to_add
from ..extras.monitor import Looking, incidents
from ..extras.monitor.parts import Parts, said
from ..install import apply as install
from ..install import contract
from . import output
from .common import Json, Url, group, opened

top = group()

_SHOWN = 50  # incidents


@top.command()
def doctor(database: Url = None, json: Json = False) -> int:
    """Check the installation, the privileges and the health of the queues, and list what is wrong with them now.

    Exit code 3: run `runner apply`. 1: a check is bad. Incidents do not change it: they are for monitoring.
    """
    with opened(database) as target:
        wrong: list[Row] = []
        checks = _part("installation", lambda: _installation(target, wrong))
        is_missing = checks[0]["verdict"] == "bad" and not checks[0]["measured"]
        rights = [] if is_missing else _part("rights", lambda: _rights(target))
        health: list[Row] = _part("cluster", lambda: _cluster(target))
        happening: list[incidents.Incident] = []
        if not is_missing:
            session = target.connect("runner doctor")
            try:
                looking = Looking(session)
                health += _part("queue_health", lambda: session.call("queue_health"))
                happening = Parts().get("incidents", partial(incidents.incidents, looking), [])
                health += _unknown(looking)
                health += [_check(name, "bad", None, "", reason) for name, reason in looking.failed.items()]
            finally:
                session.close()
    found = [*checks, *rights, *health]
    listed = [_row(incident) for incident in happening]
    if json:
        output.rows([*found, *wrong, *listed], [], True)
    else:
        output.rows(found, ["name", "verdict", "measured", "unit", "detail"], False)
        if wrong and not is_missing:  # if nothing is installed, a list of all files does not help
            print()
            output.rows(wrong, ["kind", "name", "state"], False)
        if listed:
            print()
            output.rows(listed[:_SHOWN], ["incident", "verdict", "name", "since", "detail"], False)
            if len(listed) > _SHOWN:
                print(f"and {len(listed) - _SHOWN:,} more; --json has all")
    if wrong or any(row["verdict"] == "bad" for row in rights):
        return SchemaMissing.exit_code
    return int(any(row["verdict"] == "bad" for row in found))


def _unknown(looking: Looking) -> list[Row]:
    """A row about the incidents that are not looked for, because an area is not installed."""
    kinds = [kind for kind, area in incidents.NEEDS.items() if area in looking.absent]
    if not kinds:
        return []
    return [_check("incidents", "ok", None, "", f"not looked for: {', '.join(kinds)}; {how_to_add(looking.absent)}")]


def _part(name: str, work: Callable[[], list[Row]]) -> list[Row]:
    """The rows of a part; a row with its error if it fails. The other parts continue."""
    parts = Parts()
    nothing: list[Row] = []
    rows = parts.get(name, work, nothing)
    for error in parts.errors.values():
        if isinstance(error, NotAllowed):
            return [_check(name, "warn", None, "", f"this user may not check it: {error}")]
        return [_check(name, "bad", None, "", said(error))]
    return rows


def _installation(database: Database, wrong: list[Row]) -> list[Row]:
    """The installation as a row like those of queue_health; adds the files that differ from this release to `wrong`."""
    name = "installation"
    files = install.status(database)
    later = install.later_release(files)
    files = [file for file in files if not (later and file.state == "newer")]
    wrong += [{"kind": f.kind, "name": f.name, "state": f.state} for f in files if f.state != "ok"]
    unit = f"of {len(files)} files"
    if not wrong and later:
        detail = f"the database has release {later}, this runner is {contract.release()}: upgrade the runner"
        return [_check(name, "warn", len(files), unit, detail)]
    if not wrong:
        return [_check(name, "ok", len(files), unit, "all files are installed as released")]
    missing = all(file.state == "missing" for file in files)
    detail = "the queue is not installed: run `runner apply`" if missing else "run `runner apply` to repair it"
    return [_check(name, "bad", len(files) - len(wrong), unit, detail)]


def _rights(database: Database) -> list[Row]:
    """A row for each wrong owner, definer or grant, and the warnings about the installation."""
    name = "rights"
    problems = install.rights_problems(database)
    warnings = database.warnings_about_installation()
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
    return {"name": name, "verdict": verdict, "measured": value, "unit": unit, "detail": detail}


def _row(incident: incidents.Incident) -> Row:
    return {
        "incident": incident.kind,
        "verdict": incident.verdict,
        "name": incident.name,
        "since": incident.since,
        "detail": f"{incident.text}: {incident.error}" if incident.error else incident.text,
    }
