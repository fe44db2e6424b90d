"""The command `runner`, or `rowqueue`: each command opens the database, calls procedures, and prints their results.

Exit codes: 0 done or drained; 1 failure; 2 wrong usage; 3 queue not installed, or not as released; 130 and 143 ended by
a signal.
"""

import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import Error
from . import config
from .commands import COMPLETION, Commands, program

app = typer.Typer(
    cls=Commands,
    help="A message queue in the database you already run. Every command calls the procedures that SQL can call too.",
    epilog="`runner COMMAND --help` shows options and arguments. The database is --database URL, RUNNER_DATABASE, or"
    " `database` in rowqueue.toml; without any, an embedded database is started.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(asked: bool) -> None:
    if asked:
        from ..install.contract import release

        print(release())
        raise typer.Exit


@app.callback()
def _defaults(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version and exit.")
    ] = False,
) -> None:
    name, settings = config.read(Path.cwd())
    if name:
        context.default_map = config.defaults(name, settings, _options(context.command))


def _options(command: Any) -> Any:
    """The options of a command, and whether each may be repeated. For a group: the same for each of its commands."""
    if hasattr(command, "commands"):
        return {name: _options(child) for name, child in command.commands.items()}
    return {parameter.name: getattr(parameter, "multiple", False) for parameter in command.params}


def main() -> None:
    """Run the command line and exit with its code. Errors that a user can act on are printed as one line."""
    if COMPLETION in os.environ:
        from .completion import answer

        answer(app)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name=program(), standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except (typer.TyperException, typer.Abort, Error, OSError) as error:
        code = int(getattr(error, "exit_code", 1))  # Typer's errors have one too
        print(f"runner: {_line(error)}", file=sys.stderr)
    sys.exit(code)


def _line(error: Exception) -> str:
    """An error on one line. The formatted message of Typer's errors names the argument."""
    from ..databases.registry import without_logins
    from ..escaping import escaped

    text = error.format_message() if hasattr(error, "format_message") else str(error)
    text = escaped(" ".join(without_logins(text).split()))
    return text or ("aborted" if isinstance(error, typer.Abort) else type(error).__name__)
