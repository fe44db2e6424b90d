"""`runner consume`."""

from typing import Annotated, Any

import typer

from ..consume import Options, QueueSource
from ..consume.options import OPTIONS
from . import consuming
from .common import Url, group, known_types

top = group()


@top.command()
@consuming.with_options(OPTIONS)
def consume(
    type: Annotated[
        list[str],
        typer.Option(
            "--type",
            metavar="TYPE",
            help="The queue, or a pattern with * and ?, such as 'mail.*', for all queues that match, also later ones."
            " Repeat it for several; they take turns.",
            autocompletion=known_types,
        ),
    ],
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE", help="A queue or a pattern that a --type with a pattern leaves out. May be repeated."
        ),
    ] = None,
    handler: consuming.HandlerPath = None,
    exec: consuming.Exec = None,
    worker: consuming.Worker = None,
    timeout: consuming.Timeout = None,
    log_level: consuming.Level = consuming.LogLevel.info,
    database: Url = None,
    **options: Any,
) -> None:
    """Run a handler for each message until stopped.

    At SIGTERM or SIGINT, running handlers finish; a second signal, at least a second later, aborts them.
    """
    consuming.log_to_stderr(log_level)
    with consuming.bad_options():
        chosen = Options.of_queues(type, exclude or (), **options)
    if chosen.keep_results and exec is not None:
        raise typer.BadParameter("cannot be combined with --exec", param_hint="--keep-results")
    loaded = consuming.handler_of(handler, exec, worker, timeout, chosen.concurrency)
    consuming.run(database, loaded, chosen, QueueSource)
