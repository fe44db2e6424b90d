"""Installs the queue in the project's database, through a connection of its own."""

from django.db import migrations

from ..databases import NotAllowed, open_database
from ..install.apply import apply, status
from .settings import alias, url


class InstallQueue(migrations.RunPython):
    """A migration operation that installs the queue, for a migration of your own that needs it earlier.

    The app's own first migration does the same. It uses a connection of its own, so it commits at once: give the
    migration `atomic = False`. Backwards it does nothing, because messages would be lost: `manage.py rowqueue
    uninstall` removes the queue. It does nothing in a database that is not the queue's.
    """

    def __init__(self) -> None:
        super().__init__(_install, migrations.RunPython.noop, elidable=False)

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        return (self.__class__.__qualname__, [], {})

    def describe(self) -> str:
        return "Install the queue"


def _install(_apps: object, schema_editor: object) -> None:
    if schema_editor.connection.alias == alias():  # type: ignore[attr-defined]
        upgrade(0, installs=True)


def upgrade(verbosity: int, installs: bool = False) -> None:
    """Install what is missing or of an earlier release. Without `installs`, only if the queue is there."""
    database = open_database(url())
    states = {file.state for file in status(database)}
    if states <= {"ok", "newer"} or (states == {"missing"} and not installs):
        return
    try:
        apply(database)
    except NotAllowed as error:
        raise NotAllowed(
            f"{error.detail}. `migrate` installs the queue and needs the right to create it; or let a DBA run the"
            " script that `manage.py rowqueue sql` prints, and migrate again"
        ) from error
    if verbosity:
        print("  The queue was upgraded.")
