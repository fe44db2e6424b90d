"""`runner send`: one message, or a list."""

import codecs
import os
import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from .. import requests, tracing
from ..databases import DatabaseError, Disconnected, QueueError, Session
from .common import Failed, Json, Url, connected, group, known_types, say, time_of
from .progress import work

top = group()

LONGEST_PAUSE = 1.0  # between two calls of get_result


class Conflicts(StrEnum):
    """What happens to a live message with the same dedup key."""

    KEEP = "keep"
    REPLACE = "replace"
    POSTPONE = "postpone"


LIST_LINES = 10_000  # bodies per call of send_batch
LIST_BYTES = 8 << 20
LONGEST_LINE = 100 << 20  # fits a body of 16 MiB with every character escaped


@top.command()
def send(
    type: Annotated[str, typer.Option("--type", metavar="TYPE", help="The queue.", autocompletion=known_types)],
    body: Annotated[str | None, typer.Argument(metavar="[BODY]", help="The body. -: read a list from stdin.")] = None,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Send a list from a file, one body per line; lines end with LF or CR LF. Write a body as a JSON string"
            " if it is empty, has a line feed, ends with CR or begins with a double quote. -: stdin.",
        ),
    ] = None,
    run_at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Do not claim it before this time: ISO 8601, in UTC unless it has a zone."),
    ] = None,
    delay: Annotated[
        int | None, typer.Option(min=0, max=315_360_000, help="Do not claim it for this many seconds.")
    ] = None,
    priority: Annotated[
        int | None, typer.Option(min=-32768, max=32767, help="A smaller number is claimed first. [0]")
    ] = None,
    group_key: Annotated[str | None, typer.Option(help="The group, for ordered queues and limits per group.")] = None,
    dedup_key: Annotated[str | None, typer.Option(help="At most one live message of the queue has this key.")] = None,
    on_conflict: Annotated[
        Conflicts | None,
        typer.Option(help="If a live message has the dedup key: keep it, replace its body, or postpone it. [keep]"),
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Attempts until it becomes a dead letter. [the queue's]")
    ] = None,
    headers: Annotated[str | None, typer.Option(help="Metadata stored with the body, usually JSON.")] = None,
    source: Annotated[str | None, typer.Option(help="The name of the sender.")] = None,
    wait: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="Wait at most this long for its completion and print its result."),
    ] = None,
    database: Url = None,
    json: Json = False,
) -> None:
    """Send one message, or a list from a file or stdin."""
    if body == "-" and file is None:
        body, file = None, "-"
    if (body is None) == (file is None):
        raise typer.BadParameter("give exactly one of BODY, --file FILE and -", param_hint="BODY")
    if run_at is not None and delay is not None:
        raise typer.BadParameter("cannot be combined with --delay", param_hint="--run-at")
    if on_conflict not in (None, Conflicts.KEEP) and dedup_key is None:
        raise typer.BadParameter("needs --dedup-key", param_hint="--on-conflict")
    options = (priority, group_key, dedup_key, max_attempts, headers, source, on_conflict, wait)
    if file is not None:
        if any(option is not None for option in (run_at, delay, *options)):
            raise typer.BadParameter("a list takes no options; send one body at a time", param_hint="--file")
        with _binary(file) as stream, connected(database) as session:
            count = _send_list(session, type, stream)
        say(f"{count} sent", json, affected=count)
        return
    due = time_of(run_at, "--run-at")
    with connected(database) as session:
        if wait is not None:
            session.require("results")
        with tracing.sending("send", (type,), {}) as span:
            asked = requests.send(
                type,
                body or "",
                run_at=due,
                delay_seconds=delay,
                priority=priority,
                group_key=group_key,
                dedup_key=dedup_key,
                max_attempts=max_attempts,
                headers=headers,
                source=source,
                on_conflict=None if on_conflict is None else on_conflict.value,
            )
            row = session.call(asked.procedure, *asked.arguments)[0]
            if span is not None:
                span.id = row["id"]
        if not row["created"]:
            what = "changed" if row["changed"] else "not sent"
            live = "dead letter" if row["state"] == "E" else "live message"
            print(f"runner: {what}: {live} {row['id']} has this dedup key", file=sys.stderr)
        if wait is None:
            say(str(row["id"]), json, **row)
            return
        result = _wait(session, row["id"], wait)
    if json or result is not None:
        say(result or "", json, **row, result=result)


def _wait(session: Session, id: int, seconds: float) -> str | None:
    """The result of a message, once it is completed.

    Raises Failed when it becomes a dead letter, no longer exists, or takes longer than `seconds`.
    """
    deadline = time.monotonic() + seconds
    pause = 0.02
    while True:
        rows = session.call("get_result", id)
        if not rows:
            raise Failed(
                f"message {id} no longer exists and has no result: its queue deletes completed messages, or it was"
                " cancelled or purged"
            )
        state, result, error = rows[0].values()
        if state == "C":
            return None if result is None else str(result)
        if state == "E":
            raise Failed(f"message {id} is a dead letter: {error or 'no error was recorded'}")
        left = deadline - time.monotonic()
        if left <= 0:
            how = "active" if state == "A" else "new"
            raise Failed(
                f"message {id} is not completed after {seconds:g} s; it is {how}" + (f": {error}" if error else "")
            )
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE)


def _binary(file: str) -> BinaryIO:
    try:
        return sys.stdin.buffer if file == "-" else Path(file).open("rb")
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint="--file") from None


def _send_list(session: Session, type: str, stream: BinaryIO) -> int:
    """Send a list in chunks; returns how many were sent. Raises Failed with the lines that were not sent."""
    size = os.fstat(stream.fileno()).st_size if stream.seekable() else None
    with work("sending", "sent", size or None) as found:
        for first, lines in _chunks(stream):
            last = first + len(lines) - 1
            where = f"lines {first} to {last}"
            try:
                text = b"\n".join(lines).decode("utf-8")
                call = partial(session.call, "send_batch", type, text)
                found.call(call, sum(map(len, lines)) + len(lines), f"; continue from line {last + 1}")
            except UnicodeDecodeError as error:
                line = first + error.object.count(b"\n", 0, error.start)
                raise Failed(f"line {line} is not UTF-8; {where} were not sent, all lines before were") from None
            except Disconnected as error:
                raise Failed(f"{where} may not have been sent, all lines before were: {error}") from error
            except (QueueError, DatabaseError) as error:
                text = f"{where} were not sent, all lines before were; counting from line {first}: {error}"
                raise Failed(text) from error
    return found.count


def _chunks(stream: BinaryIO) -> Iterator[tuple[int, list[bytes]]]:
    """Chunks for one call each: the number of the first line, and the lines without LF or CR LF and without a BOM."""
    first = 1
    lines: list[bytes] = []
    size = 0
    while line := stream.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            number = first + len(lines)
            raise Failed(f"line {number} is longer than {LONGEST_LINE >> 20} MiB; line {first} and later were not sent")
        if first == 1 and not lines:
            line = line.removeprefix(codecs.BOM_UTF8)
        if len(lines) == LIST_LINES or size + len(line) > LIST_BYTES:
            if size > len(lines):  # empty lines are not messages
                yield first, lines
            first, lines, size = first + len(lines), [], 0
        lines.append((line[:-2] if line.endswith(b"\r\n") else line).removesuffix(b"\n"))
        size += len(lines[-1]) + 1
    if size > len(lines):
        yield first, lines
