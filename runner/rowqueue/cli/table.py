"""`runner table`: polling tables."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from ..consume import Options
from ..consume.options import OPTIONS
from ..databases.values import options
from ..extras.tables import TableSource
from . import consuming, output
from .common import Failed, Json, Size, Url, connected, group, listed, say
from .progress import until_none

app = group("Polling tables: your own tables, used as queues.")

Adopted = Annotated[str, typer.Argument(metavar="NAME", help="The name of the polling table.")]


class RowState(StrEnum):
    """The states of a row that has been claimed."""

    A = "A"
    N = "N"
    E = "E"


@app.command()
@consuming.with_options(OPTIONS.keys() - {"transaction", "keep_results", "report"})
def consume(
    name: Adopted,
    handler: consuming.HandlerPath = None,
    exec: consuming.Exec = None,
    worker: consuming.Worker = None,
    timeout: consuming.Timeout = None,
    log_level: consuming.Level = consuming.LogLevel.info,
    database: Url = None,
    **options: Any,
) -> None:
    """Run a handler for each row of a polling table until stopped. At SIGTERM or SIGINT, running handlers finish."""
    consuming.log_to_stderr(log_level)
    chosen = Options((name,), **options)
    loaded = consuming.handler_of(handler, exec, worker, timeout, chosen.concurrency)
    consuming.run(database, loaded, chosen, TableSource)


@app.command("adopt")
def table_adopt(
    name: Adopted,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table, written as in SQL, such as shop.orders.")],
    key_columns: Annotated[
        str | None, typer.Option(help="The columns that identify a row, separated by commas. [all columns]")
    ] = None,
    order_column: Annotated[
        str | None, typer.Option(help="The column that rows are claimed in order of. [the key]")
    ] = None,
    status_column: Annotated[str | None, typer.Option(help="The column that holds the status. [none]")] = None,
    ready_value: Annotated[str | None, typer.Option(help="The status of a row that is ready. [NULL]")] = None,
    active_value: Annotated[
        str | None, typer.Option(help="The status of a row that is claimed. [the ready value]")
    ] = None,
    done_value: Annotated[str | None, typer.Option(help="The status of a row that is done.")] = None,
    error_value: Annotated[str | None, typer.Option(help="The status of a row whose attempts are used up.")] = None,
    on_complete: Annotated[str | None, typer.Option(help="Keep or delete rows that are done. [keep]")] = None,
    late_seconds: Annotated[
        int | None, typer.Option(help="Without a status: seconds until a new row is claimed, for late commits.")
    ] = None,
    equal_rows: Annotated[
        bool, typer.Option("--equal-rows", help="Without a key: accept rows that are equal in all columns.")
    ] = False,
    max_attempts: Annotated[int | None, typer.Option(help="Attempts until a row is dead. [10]")] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Use an existing table as a queue. The table is not changed."""
    chosen = options(
        key_columns=key_columns,
        order_column=order_column,
        status_column=status_column,
        ready_value=ready_value,
        active_value=active_value,
        done_value=done_value,
        error_value=error_value,
        on_complete=on_complete,
        late_seconds=late_seconds,
        equal_rows=equal_rows,
        max_attempts=max_attempts,
    )
    with connected(database) as session:
        created = session.call("adopt_table", name, table, chosen)[0]["created"]
    say("adopted" if created else "already adopted", json, created=created)


@app.command("unadopt")
def table_unadopt(name: Adopted, database: Url = None, json: Json = False) -> None:
    """Stop using a table as a queue. Claimed rows are released."""
    with connected(database) as session:
        count = session.call("unadopt_table", name)[0]["affected"]
    if not count:
        raise Failed(f"no table is adopted as {name!r}")
    say("unadopted", json, affected=count)


@app.command("redrive")
def table_redrive(
    name: Adopted,
    id: Annotated[int | None, typer.Option("--id", help="The id of one row's claim. [all]")] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Retry dead rows. Their attempts start again at 0."""
    with connected(database) as session:
        if id is None:
            count = until_none(lambda: session.call("redrive_rows", name), "redriving", "redriven")
        else:
            count = session.call("redrive_row", name, id)[0]["affected"]
    say(f"{count} redriven", json, affected=count)


@app.command("list")
def table_list(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The name of the polling table. [all]")] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Show the polling tables, with the numbers of rows claimed, waiting for a retry, or dead."""
    with connected(database) as session:
        columns = ("name", "table_name", "key_columns", "status_column", "on_complete", "active", "waiting", "dead")
        output.rows(listed(session, "list_polling_tables", name), columns, json)


@app.command("peek")
def table_peek(
    name: Adopted,
    state: Annotated[RowState | None, typer.Option(help="A claimed, N waiting for a retry, E dead. [all]")] = None,
    size: Size = 20,
    database: Url = None,
    json: Json = False,
) -> None:
    """Show rows that are claimed, waiting for a retry, or dead."""
    with connected(database) as session:
        found = session.call("peek_rows", name, state.value if state else None, size)
        output.rows(found, ["id", "state", "attempts", "run_at", "consumer", "row_key", "error"], json)
