"""`runner apply`, `sql` and `uninstall`."""

import sys
from typing import Annotated

import typer

from ..databases import releases
from ..databases.link import when_there
from ..escaping import escaped
from ..install import apply as install
from ..install import contract
from .common import Json, Url, Yes, group, opened, say

top = group()

Areas = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="The areas to install, such as queue,schedules; the core is always installed."
        " [those that are installed; in a new database all]",
    ),
]


@top.command()
def apply(
    database: Url = None,
    areas: Areas = None,
    break_lock: Annotated[bool, typer.Option(help="Remove the lock that a killed `yoyo apply` left behind.")] = False,
    connect_timeout: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for a database that cannot be reached.")
    ] = 0,
    json: Json = False,
) -> None:
    """Install the queue, or upgrade it to this release. A second run changes nothing.

    Areas can be added later, but not removed.
    """
    named = _names(areas)
    with opened(database) as target:
        applied = when_there(lambda: install.apply(target, break_lock, named), connect_timeout)
    for notice in [*(f"repaired: {problem}" for problem in applied.repaired), *applied.notices]:
        print(f"runner: {escaped(notice)}", file=sys.stderr)
    say(
        f"applied {len(applied.migrations)} migrations and {len(applied.procedures)} procedure files"
        if applied.migrations or applied.procedures
        else "nothing to do: this release is already installed",
        json,
        migrations=applied.migrations,
        procedures=applied.procedures,
        dropped=applied.dropped,
        repaired=applied.repaired,
    )


@top.command()
def sql(
    engine: Annotated[str, typer.Option("--database", metavar="NAME", help="The kind of database, not a URL.")],
    areas: Areas = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="VERSION",
            help="Upgrade a database of this earlier release, with all its areas or --areas.",
        ),
    ] = None,
) -> None:
    """Print the installation, or the upgrade of an earlier release, as one SQL script."""
    named = _names(areas)
    try:
        if since is not None:
            releases.find(since)
    except LookupError as error:
        raise typer.BadParameter(str(error.args[0]), param_hint="--from") from None
    try:
        parts = install.script(engine, named, since)
    except (LookupError, ValueError) as error:
        raise typer.BadParameter(str(error.args[0]), param_hint="--database") from None
    for part in parts:
        print(part)


def _names(areas: str | None) -> list[str] | None:
    """The names in a list of areas. Raises BadParameter for an unknown one."""
    if areas is None:
        return None
    names = [name for part in areas.split(",") if (name := part.strip())]
    try:
        contract.load().with_needs(names)
    except LookupError as error:
        raise typer.BadParameter(str(error.args[0]), param_hint="--areas") from None
    return names


@top.command()
def uninstall(
    database: Url = None,
    yes: Yes = False,
    force: Annotated[
        bool, typer.Option("--force", help="Continue if polling tables are not released: their claimed rows stay.")
    ] = False,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Also drop or break your views and other objects that use the queue.")
    ] = False,
) -> None:
    """Remove the queue and all its messages from the database. Polling tables are released first.

    Tables of other users are not changed.
    """
    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter("required without a terminal: all messages will be lost", param_hint="--yes")
        typer.confirm("Remove the queue and all its messages?", abort=True, err=True)
    with opened(database) as target:
        released, left = install.uninstall(target, force, cascade)
    notes = [
        f"; released first: {', '.join(released)}" if released else "",
        f"; left: {', '.join(left)}" if left else "",
    ]
    print(escaped("uninstalled" + "".join(notes)))
