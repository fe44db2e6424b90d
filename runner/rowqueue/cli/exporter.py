"""`runner exporter`."""

from typing import Annotated

import typer

from . import consuming
from .common import group, needs, opened

top = group()

# Prometheus's list of exporters' ports, 9100 to 9999, is full. This port is in no list and below the ephemeral ports.
PORT = 9075

Databases = Annotated[
    list[str] | None,
    typer.Option(
        "--database",
        envvar="RUNNER_DATABASE",
        metavar="[NAME=]URL",
        help="Repeat it for several databases. NAME is the label `database`. [the embedded database]",
    ),
]


@top.command()
def exporter(
    database: Databases = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on. Everyone who reaches it can read.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port to listen on. 0: any free port.")] = PORT,
    cache: Annotated[
        float, typer.Option(min=0, max=3_600, metavar="SECONDS", help="How long a database's answer is reused.")
    ] = 5,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=600, metavar="SECONDS", help="A database that takes longer counts as down.")
    ] = 5,
    max_names: Annotated[
        int, typer.Option(min=1, max=100_000, help="Per database, report at most this many queues, feeds and tables.")
    ] = 500,
    log_level: consuming.Level = consuming.LogLevel.info,
) -> None:
    """Serve the metrics of all queues for Prometheus."""
    with needs("runner exporter", "metrics"):
        from ..extras.monitor import exporter as serving  # prometheus_client takes long to load

    consuming.log_to_stderr(log_level)
    if not database:
        with opened(None) as embedded:
            serving.serve([("embedded", embedded)], host, port, cache, timeout, max_names)
        return
    try:
        databases = serving.named(database)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--database") from None
    serving.serve(databases, host, port, cache, timeout, max_names)
