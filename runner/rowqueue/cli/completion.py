"""`runner completion`: the Tab key of a shell completes commands, options and queues."""

import os
import sys
from enum import StrEnum
from typing import Annotated, NoReturn

import typer

from .commands import COMPLETION, program
from .common import group

top = group()


class Shell(StrEnum):
    """The shells for which completion is tested."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


@top.command()
def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print the script that completes commands and queues by Tab."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    print(get_completion_script(prog_name=program(), complete_var=COMPLETION, shell=shell.value))


def answer(app: typer.Typer) -> NoReturn:
    """Print the completions that a shell asked for and exit at once, without waiting for open connections."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    code = 1
    try:
        completion_init()
        app(prog_name=program(), complete_var=COMPLETION)  # raises SystemExit
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        try:
            sys.stdout.flush()
        finally:
            os._exit(code)
