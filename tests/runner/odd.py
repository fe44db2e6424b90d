"""Handlers that end in every odd way: the body of a message, or column v of a row, names the way."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from jobs import note
from rowqueue import DeadLetter, Message, Retry
from rowqueue.extras import feeds

feeds.FIRST_BACKOFF = 0.01  # a row of a feed is retried until it succeeds


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class MuteDiscard(DeadLetter):
    def __str__(self) -> str:
        raise SystemExit("no text")


class NoText(Exception):
    def __str__(self) -> str:
        return 17  # type: ignore[return-value]


class Text(str):
    def __getitem__(self, key: Any) -> str:
        raise RuntimeError("not this way")

    def __contains__(self, key: object) -> bool:
        raise RuntimeError("not this way")

    replace = encode = __getitem__  # type: ignore[assignment]


class OddText(Exception):
    def __str__(self) -> str:
        return Text("odd")


class Own(BaseException):
    pass


class LateRetry(Retry):
    def __init__(self, after: Any) -> None:
        super().__init__("later")
        self.after = after


class NoInit(Retry):
    def __init__(self) -> None:
        pass


def throw(error: BaseException) -> None:
    raise error


def deep(depth: int = 0) -> int:
    return deep(depth + 1) + 1


def looped() -> None:
    error = ValueError("itself")
    error.__cause__ = error
    raise error


def in_thread() -> None:
    thread = threading.Thread(target=sys.exit)
    thread.start()
    thread.join()
    raise RuntimeError("after the thread")


def generator() -> Any:
    yield 1


async def coroutine() -> None:
    """Never awaited."""


def nested() -> Any:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    return value


ERRORS: dict[str, Callable[[], Any]] = {
    "mute": lambda: throw(Mute()),
    "mute discard": lambda: throw(MuteDiscard()),
    "no text": lambda: throw(NoText()),
    "odd text": lambda: throw(OddText()),
    "huge": lambda: throw(ValueError("x" * 20_000_000)),
    "nul": lambda: throw(ValueError("a\0b")),
    "surrogate": lambda: throw(ValueError("\ud800 \udfff")),
    "lines": lambda: throw(ValueError('two\nlines\n"17,30,busy"\r\n\x1b]52;c;aGk=\x07')),
    "list": lambda: throw(Retry("1,-1,not me")),
    "quotes": lambda: throw(DeadLetter('"\\' * 1_999)),
    "exit": lambda: sys.exit("usage: …"),
    "exit 0": lambda: sys.exit(),
    "interrupt": lambda: throw(KeyboardInterrupt()),
    "generator exit": lambda: throw(GeneratorExit()),
    "cancelled": lambda: throw(asyncio.CancelledError()),
    "base": lambda: throw(Own("own")),
    "group": lambda: throw(BaseExceptionGroup("two", [Mute(), SystemExit(3)])),
    "stop": lambda: throw(StopIteration(1)),
    "stop async": lambda: throw(StopAsyncIteration(1)),
    "memory": lambda: throw(MemoryError()),
    "recursion": deep,
    "itself": looped,
    "thread": in_thread,
    "retry nan": lambda: throw(LateRetry(float("nan"))),
    "retry text": lambda: throw(LateRetry("soon")),
    "retry without init": lambda: throw(NoInit()),
    "class": lambda: throw(type("Odd\0\n\ud800", (Exception,), {})("x")),
    "coroutine": coroutine,
    "generator": generator,
}

# With --keep-results: values that are not text or JSON.
RESULTS: dict[str, Callable[[], Any]] = {
    "nan": lambda: {"x": float("nan")},
    "infinity": lambda: [float("-inf")],
    "object": object,
    "nul result": lambda: "a\0b",
    "surrogate result": lambda: "\ud800",
    "nested": nested,
    "digits": lambda: 10**5_000,
    "17 MB": lambda: "x" * (17 << 20),
}

# With --transaction: (what the handler does, whether the message may be gone afterwards, as its work is committed).
TRANSACTION: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "close": (lambda connection: connection.close(), False),
    "commit": (lambda connection: connection.commit(), False),
    "rollback": (lambda connection: connection.rollback(), False),
    "autocommit": (lambda connection: set_autocommit(connection), True),
    "COMMIT": (lambda connection: connection.cursor().execute("COMMIT"), True),
    "ROLLBACK": (lambda connection: connection.cursor().execute("ROLLBACK"), False),
    "bad SQL": (lambda connection: connection.cursor().execute("SELEKT"), False),
    "swallowed": (lambda connection: swallow(connection), True),
    "closed and mute": (lambda connection: (connection.close(), throw(Mute())), False),
}


def set_autocommit(connection: Any) -> None:
    if callable(connection.autocommit):
        connection.autocommit(True)
    else:
        connection.autocommit = True


def swallow(connection: Any) -> None:
    try:
        connection.cursor().execute("SELEKT")
    except Exception:
        note("swallowed")


def word(message: Any) -> str:
    if isinstance(message, Message):
        return message.body
    return str(next(value for name, value in message.row.items() if name.lower() == "v"))


def act(message: Any) -> Any:
    """Do what the body says; `good` and unknown words do nothing."""
    name = word(message)
    if name in TRANSACTION:
        return TRANSACTION[name][0](message.connection) and None
    return (ERRORS | RESULTS).get(name, str)()


def one(message: Message) -> Any:
    return act(message)


def whole(messages: list[Message]) -> Any:
    """A list: what the body says is what the handler says about the message, or about all of a batch of one."""
    if len(messages) == 1:
        return act(messages[0]) or None
    return None


def blame(messages: list[Message]) -> Any:
    """Name the odd ones with their exceptions; other values stand for texts."""
    found: dict[Any, Any] = {}
    for message in messages:
        try:
            value = act(message)
            if value != "":
                found[message.id] = value if word(message) in RESULTS else NoText()
        except BaseException as error:
            found[message.id] = error
    return found


async def one_async(message: Message) -> Any:
    name = word(message)
    if name == "cancel itself":
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return None
    if name == "await cancelled":
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task
    if name == "stop loop":
        asyncio.get_running_loop().stop()
        raise RuntimeError("the loop goes on")
    if name == "exit in task":
        kept.append(asyncio.create_task(exit_soon()))
        await asyncio.sleep(0.05)
        raise RuntimeError("the loop goes on")
    return act(message)


kept: list[Any] = []  # tasks: the loop holds only weak references


async def exit_soon() -> None:
    sys.exit(3)


async def whole_async(messages: list[Message]) -> Any:
    return await one_async(messages[0]) or None if len(messages) == 1 else None


ASYNC = ("cancel itself", "await cancelled", "stop loop", "exit in task")


def row(record: Any) -> Any:
    """A row of a feed: odd at the first attempt only."""
    note([word(record), record.attempt])
    return act(record) if record.attempt == 1 else None


def give_up(message: Message) -> None:
    """Dead-letter it with the text after the word dead."""
    said, _, error = message.body.partition(" ")
    if said == "dead":
        raise DeadLetter(error)


def give_all_up(messages: list[Message]) -> dict[int, Exception]:
    """The same for a whole batch."""
    said = {message.id: message.body.partition(" ") for message in messages}
    return {id: DeadLetter(error) for id, (word, _, error) in said.items() if word == "dead"}


def long_error(message: Message) -> None:
    raise Retry(message.body[0] * 4_000)


def quotes(message: Message) -> str:
    """A result that is twice as long once a driver has escaped it."""
    return '"' * 9_000_000 if message.body == "long" else "short"


def slow_result(message: Message) -> str:
    note(message.body)
    time.sleep(1)
    return "result"


def poison(message: Message) -> None:
    """With --transaction: do what JOBS_POISON says, then change a row."""
    cursor = message.connection.cursor()
    if message.body == "poison":
        for statement in os.environ["JOBS_POISON"].split(";"):
            cursor.execute(statement)
        time.sleep(float(os.environ.get("JOBS_PAUSE", 0)))
    cursor.execute(f"INSERT INTO effect (body) VALUES ('{message.body}')")


def sleep(message: Message) -> None:
    note(message.body)
    time.sleep(float(message.body))


if __name__ == "__main__":  # a worker
    import json

    sys.set_int_max_str_digits(0)

    def say(id: int, more: str = "") -> None:
        print(f'{{"id": {id}{more}}}')

    WORKER: dict[str, Callable[[int], Any]] = {
        "rubbish": lambda id: print("rubbish"),
        "binary": lambda id: os.write(1, b"\xff\xfe\0\n"),
        "digits": lambda id: print('{"id": ' + "1" * 5_000 + "}"),
        "deep": lambda id: say(id, ', "result": ' + "[" * 100_000 + "]" * 100_000),
        "nan": lambda id: say(id, ', "result": NaN'),
        "surrogate": lambda id: say(id, ', "error": "\\ud800\\u0000"'),
        "long": lambda id: print(json.dumps({"id": id, "error": "x" * 900_000})),
        "never after": lambda id: say(id, ', "error": "x", "retry_after_seconds": NaN'),
        "half": lambda id: (os.write(1, b'{"id": '), os._exit(0)),
        "exit": lambda id: os._exit(0),
        "exit 126": lambda id: os._exit(126),
        "kill": lambda id: os.kill(os.getpid(), 9),
        "close": lambda id: (os.close(1), os._exit(3)),
    }
    for line in sys.stdin:
        message = json.loads(line)
        WORKER.get(message.get("body", ""), say)(message["id"])
        sys.stdout.flush()
