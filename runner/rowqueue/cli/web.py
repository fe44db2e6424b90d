"""`runner web`."""

import os
import secrets
from typing import Annotated, Any

import typer

from . import consuming
from .common import group, needs, opened
from .exporter import Databases

top = group()

PORT = 8425
_TOKEN = "RUNNER_WEB_TOKEN"
_SHORTEST = 16
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@top.command()
def web(
    database: Databases = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port to listen on. 0: any free port.")] = PORT,
    allow_changes: Annotated[
        bool,
        typer.Option(
            "--allow-changes",
            help="Show buttons that change queues: pause, redrive, cancel, purge. Without it, read-only.",
        ),
    ] = False,
    hide_bodies: Annotated[
        bool, typer.Option("--hide-bodies", help="Hide bodies, headers, results and the texts of errors.")
    ] = False,
    root_path: Annotated[
        str,
        typer.Option(metavar="PATH", help="The path under which a reverse proxy serves the pages, such as /queues."),
    ] = "",
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="A further host name that browsers may use, such as the proxy's."),
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Trust the headers X-Forwarded-Host and X-Forwarded-Proto.")
    ] = False,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token", help="Require no token: everyone who reaches the port can read. Only on a loopback address."
        ),
    ] = False,
    log_level: consuming.Level = consuming.LogLevel.info,
) -> None:
    """Show the queues of one or more databases as web pages.

    Prints an address with a token. The token is new at each start unless the environment variable RUNNER_WEB_TOKEN sets
    one. The server also has /metrics.
    """
    if root_path and (not root_path.startswith("/") or root_path.startswith("//") or not root_path.isprintable()):
        raise typer.BadParameter("must begin with one slash, such as /queues", param_hint="--root-path")
    if no_token and host not in _LOOPBACK:
        raise typer.BadParameter(
            f"is possible only with --host {' or '.join(sorted(_LOOPBACK))}", param_hint="--no-token"
        )
    token = None if no_token else _token()
    with needs("runner web", "web"):
        from ..extras.monitor import exporter
        from ..extras.web import serving

    consuming.log_to_stderr(log_level)
    listener = serving.listening(host, port)
    port = listener.getsockname()[1]
    rules = serving.rules(host, port, token, allowed_host or [], root_path.rstrip("/"), behind_proxy)
    options = serving.Options(allow_changes, hide_bodies)

    def serve(databases: Any) -> None:
        shown = f"[{host}]" if ":" in host else host
        print(f"http://{shown}:{port}{rules.root}/" + (f"?token={token}" if token else ""), flush=True)
        serving.serve(databases, listener, rules, options)

    if not database:
        with opened(None) as embedded:
            serve([("embedded", embedded)])
        return
    try:
        databases = exporter.named(database)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--database") from None
    serve(databases)


def _token() -> str:
    token = os.environ.get(_TOKEN)
    if token is None:
        return secrets.token_urlsafe(24)
    if len(token) < _SHORTEST or not (token.isascii() and token.replace("-", "").replace("_", "").isalnum()):
        raise typer.BadParameter(
            f"must have {_SHORTEST} or more letters, digits, - and _", param_hint=f"environment variable {_TOKEN}"
        )
    return token
