"""`runner consume`."""

from typing import Annotated

import typer

from ..consume import Options, QueueSource
from . import consuming
from .common import Url, group, known_types

top = group()


@top.command()
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
    batch: Annotated[int | None, typer.Option(**consuming.limits("batch"), help=consuming.BATCH)] = None,
    concurrency: consuming.Concurrency = 1,
    lease: consuming.Lease = None,
    consumer: Annotated[
        str | None,
        typer.Option(help="This consumer's name, which keeps its position in a ring. [host and process number]"),
    ] = None,
    once: consuming.Once = False,
    drain: consuming.Drain = False,
    max_messages: consuming.MaxMessages = None,
    idle_timeout: consuming.IdleTimeout = None,
    transaction: Annotated[
        bool,
        typer.Option(
            "--transaction",
            help="Handle messages in the transaction that takes them: an effect in this database happens once.",
        ),
    ] = False,
    keep_results: Annotated[
        bool,
        typer.Option(
            "--keep-results",
            help="Keep what the handler returns (text or JSON) as the result. The queue must archive.",
        ),
    ] = False,
    shutdown_timeout: consuming.ShutdownTimeout = consuming.SHUTDOWN,
    health_port: consuming.HealthPort = None,
    log_level: consuming.Level = consuming.LogLevel.info,
    connect_timeout: consuming.ConnectTimeout = None,
    report: consuming.Report = consuming.REPORT,
    database: Url = None,
) -> None:
    """Run a handler for each message until stopped.

    At SIGTERM or SIGINT, running handlers finish; a second signal, at least a second later, aborts them.
    """
    consuming.log_to_stderr(log_level)
    if keep_results and exec is not None:
        raise typer.BadParameter("cannot be combined with --exec", param_hint="--keep-results")
    with consuming.bad_options():
        options = Options.of_queues(
            type,
            exclude or (),
            batch,
            consumer,
            concurrency=concurrency,
            lease=lease,
            once=once,
            drain=drain,
            max_messages=max_messages,
            idle_timeout=idle_timeout,
            transaction=transaction,
            keep_results=keep_results,
            shutdown_timeout=shutdown_timeout,
            connect_timeout=connect_timeout,
            report=report,
        )
    loaded = consuming.handler_of(handler, exec, worker, timeout, concurrency)
    with consuming.bad_options():
        options = options.for_handler(loaded)
    consuming.run(database, loaded, options, QueueSource, health_port)
