"""How the cost of rowqueue grows with the amount of data: python benchmarks/growth.py

100,000 types, 1,000,000 groups, 65,536 priorities, 10,000,000 ready messages, 1,000,000 dead letters. Prints one
Markdown table; benchmarks/README.md explains each line. Starts its own server, or uses the one that you name. Few and
many are two databases of one server, whose calls alternate (A B A B); each figure is a median.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import lines
import mysql
import on_firebird
import postgresql
from lines import KEY, TYPE, Bench, Client, servers
from rowqueue.messages import Failure

KINDS: tuple[type[Client], ...] = (postgresql.Client, mysql.Client, on_firebird.Client)
SIDE = "side"  # the queue that calls consume, of the same size with few and with many
READY = 10_000  # messages in the measured queue, unless their number is what grows
LIMIT = 1.5  # the target for the ratio of many to few
WARM_UP = 8  # untimed calls: from the sixth on, PostgreSQL may use a generic plan


@dataclass
class Clock:
    """The time of calls in seconds: wall-clock time, and processor time of the server's process."""

    process: int | None
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def _used(self) -> float:
        """Seconds of all threads; not available for a server on another machine."""
        return 0 if self.process is None else lines.processor_seconds(self.process)

    @contextmanager
    def running(self, count: int = 1) -> Iterator[None]:
        """Time the block, divided by `count`."""
        used = self._used()
        started = time.perf_counter()
        yield
        self.wall.append((time.perf_counter() - started) / count)
        self.cpu.append((self._used() - used) / count)


# ---- the calls: each prepares, is timed, and leaves the same amount of data ------------------------------------------

Call = Callable[[Client, Clock], None]


def claim(size: int) -> Call:
    def call(client: Client, clock: Clock) -> None:
        with clock.running():
            rows = client.call("claim_batch", TYPE, size, "bench")
            client.call("finish_batch", rows[0][KEY], None, 0)
        assert len(rows) == size

    return call


def ask(procedure: str, *arguments: Any, size: int = 0) -> Call:
    """A call that only reads, or sends. `size`: the number of returned rows."""

    def call(client: Client, clock: Clock) -> None:
        with clock.running():
            rows = client.call(procedure, *arguments)
        assert not size or len(rows) == size, f"{procedure}: {len(rows)} rows"

    return call


def each(procedure: str) -> Call:
    """The time per row of a call that returns one per queue."""

    def call(client: Client, clock: Clock) -> None:
        started = Clock(clock.process)
        with started.running():
            rows = client.call(procedure, None)
        clock.wall.append(started.wall[0] / len(rows))
        clock.cpu.append(started.cpu[0] / len(rows))

    return call


def find(client: Client, clock: Clock) -> None:
    """Find a message from the middle by id; the first ones may be in use."""
    [(last, *_)] = client.run(f"SELECT MAX(id) FROM {client.prefix}message")
    with clock.running():
        rows = client.call("find_messages", None, json.dumps({"id": last // 2}))
    assert len(rows) <= 1


def cancel(client: Client, clock: Clock) -> None:
    ident = client.call("send", TYPE, "cancelled")[0][0]
    with clock.running():
        [(count, *_)] = client.call("cancel", ident)
    assert count == 1


def _send_side(client: Client, count: int) -> None:
    client.call("send_batch", SIDE, "\n".join(lines.bodies(100, count)))


def _kill_side(client: Client, count: int) -> None:
    _send_side(client, count)
    rows = client.call("claim_batch", SIDE, count, "bench")
    client.call("finish_batch", rows[0][KEY], "\n".join(Failure(row[0], -1, "error 17").line() for row in rows), 0)


def purge(state: str, count: int = 1000) -> Call:
    def call(client: Client, clock: Clock) -> None:
        (_send_side if state == "N" else _kill_side)(client, count)
        with clock.running():
            [(gone, *_)] = client.call("purge", SIDE, state, None, 10_000)
        assert gone == count

    return call


def redrive(client: Client, clock: Clock) -> None:
    _kill_side(client, 1000)
    with clock.running():
        [(count, *_)] = client.call("redrive_all", SIDE)
    assert count == 1000
    client.call("purge", SIDE, "N", None, 10_000)


def redrive_among(client: Client, clock: Clock) -> None:
    """10,000 messages of the queue that has many."""
    with clock.running():
        [(count, *_)] = client.call("redrive_all", TYPE, None, 10_000)
    assert count == 10_000
    # The messages of the many were sent before all others.
    [(last, *_)] = client.run(f"SELECT MAX(id) FROM {client.prefix}dead WHERE type = '{TYPE}'")
    bury(client, f"id <= {last}")


def purge_among(state: str) -> Call:
    """10,000 messages of the queue that has many."""

    def call(client: Client, clock: Clock) -> None:
        with clock.running():
            [(count, *_)] = client.call("purge", TYPE, state, None, 10_000)
        assert count == 10_000, f"{count}"

    return call


CALLS: dict[str, tuple[int, Call]] = {
    "`claim_batch` of 10, `finish_batch`": (40, claim(10)),
    "`claim_batch` of 100, `finish_batch`": (20, claim(100)),
    "`send`": (60, ask("send", TYPE, "x" * 100)),
    "`send_batch` of 1,000": (8, ask("send_batch", TYPE, "\n".join(lines.bodies(100, 1000)))),
    "`queue_stats` of the type": (10, ask("queue_stats", TYPE, size=1)),
    "`queue_health`": (8, ask("queue_health")),
    "`list_queues` of the type": (20, ask("list_queues", TYPE, size=1)),
    "`peek` of 10": (20, ask("peek", TYPE, "N", 10, size=10)),
    "`find_messages` by id": (20, find),
    "`cancel`": (20, cancel),
    "`list_errors`": (5, ask("list_errors", TYPE)),
    "`redrive_all` of 1,000": (5, redrive),
    "`purge` of 1,000 new": (5, purge("N")),
    "`purge` of 1,000 dead": (5, purge("E")),
}


# ---- what grows ------------------------------------------------------------------------------------------------------


def send(client: Client, count: int) -> None:
    texts = lines.bodies(100, min(count, 10_000))
    for some in lines.chunks(texts, count):
        client.call("send_batch", TYPE, "\n".join(some))


def bury(client: Client, condition: str) -> None:
    """Turn ready messages into dead letters."""
    mq, where = client.prefix, f"type = '{TYPE}' AND {condition}"
    client.run(
        f"INSERT INTO {mq}dead (id, died_at, attempts, type, consumer, error)"
        f" SELECT id, run_at, 10, type, 'bench', {client.joined.format('order ', 'id')} FROM {mq}ready WHERE {where}"
    )
    client.run(f"DELETE FROM {mq}ready WHERE {where}")


def make_ready(client: Client) -> None:
    """Make every message ready, at its place in the order."""
    mq = client.prefix
    client.run(f"DELETE FROM {mq}ready")
    client.run(
        f"INSERT INTO {mq}ready (type, priority, run_at, id, attempts)"
        f" SELECT type, priority, run_at, id, 0 FROM {mq}message"
    )


POLICY = (
    "lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, notify, max_active, rate,"
    " rate_seconds, group_max_active, group_rate, group_rate_seconds, paused, ring, fair, dead_stops_group"
)


def grow_types(client: Client, count: int) -> None:
    """`count` more queues, each with a message, a policy and a low-water mark."""
    mq = client.prefix
    client.call("set_queue", TYPE, '{"lease_seconds": 30}')
    send(client, count)
    client.call("complete_batch", client.call("claim_batch", TYPE, 1, "bench")[0][KEY])
    policy = POLICY + ", grouped, mixed" * (mq == "mq.")
    for table, columns in (("queue", policy), ("mark", client.mark_columns)):
        copied = ", ".join(f"t.{column}" for column in columns.split(", "))
        client.run(
            f"INSERT INTO {mq}{table} (type, {columns}) SELECT {client.joined.format('type-', 'm.id')}, {copied}"
            f" FROM {mq}{table} AS t CROSS JOIN {mq}message AS m WHERE t.type = '{TYPE}'"
        )
    client.run(f"UPDATE {mq}message SET type = {client.joined.format('type-', 'id')}")
    make_ready(client)
    send(client, READY)


def grow_groups(client: Client, count: int) -> None:
    """An ordered queue with `count` groups of one message."""
    mq = client.prefix
    client.call("set_queue", TYPE, '{"ordered": 1}')
    send(client, count)
    client.run(f"DELETE FROM {mq}grouped")
    client.run(f"UPDATE {mq}message SET group_key = {client.joined.format('customer-', 'id')}")
    client.set_lanes()
    client.run(
        f"INSERT INTO {mq}grouped (type, group_key, id, attempts) SELECT type, group_key, id, 0 FROM {mq}message"
    )


def grow_fair(client: Client, count: int) -> None:
    """A fair queue with `count` groups of one message."""
    mq = client.prefix
    send(client, count)
    client.run(f"UPDATE {mq}message SET group_key = {client.joined.format('customer-', 'id')}")
    client.call("set_queue", TYPE, '{"fair": 1}')


def grow_blocked(client: Client, count: int) -> None:
    """An ordered queue with `count` groups of two messages, of which each has an active one, and then a backlog of
    other groups."""
    mq = client.prefix
    client.call("set_queue", TYPE, '{"ordered": 1}')
    send(client, -(-2 * count // READY) * READY + READY)
    [(first, last)] = client.run(f"SELECT MIN(id), MAX(id) FROM {mq}message")
    client.run(f"DELETE FROM {mq}grouped")
    own = client.joined.format("customer-", "id")
    shared = client.joined.format("blocked-", f"MOD(id, {count})")
    client.run(f"UPDATE {mq}message SET group_key = CASE WHEN id > {last - READY} THEN {own} ELSE {shared} END")
    client.set_lanes()
    client.run(
        f"INSERT INTO {mq}grouped (type, group_key, id, attempts) SELECT type, group_key, id, 0 FROM {mq}message"
        f" WHERE id < {first + 2 * count} OR id > {last - READY}"
    )
    gone = f"id >= {first + 2 * count} AND id <= {last - READY}"
    client.run(f"DELETE FROM {mq}ready WHERE type = '{TYPE}' AND {gone}")
    client.run(f"DELETE FROM {mq}message WHERE {gone}")
    blocked = 0
    while blocked < count:
        blocked += len(client.call("claim_batch", TYPE, min(250, count - blocked), "bench", 3_600))


def grow_priorities(client: Client, count: int) -> None:
    """Ten messages in each of `count` priorities; the total is the same with few."""
    send(client, 10 * 65_536 // 10_000 * 10_000)
    client.run(f"UPDATE {client.prefix}message SET priority = MOD(id, {count}) - {count // 2}")
    make_ready(client)


def grow_dead(client: Client, count: int) -> None:
    send(client, count)
    bury(client, "id > 0")
    send(client, READY)


@dataclass(frozen=True)
class Growth:
    """What grows, the numbers of few and of many, and its special calls."""

    few: int
    many: int
    fill: Callable[[Client, int], None]
    more: dict[str, tuple[int, Call]] = field(default_factory=dict)
    scales: bool = True


BY_GROUP = {"`find_messages` by group_key": (20, ask("find_messages", TYPE, '{"group_key": "customer-9999"}', size=1))}
EVERY_TYPE = {
    "`queue_stats` of all, per type": (3, each("queue_stats")),
    "`list_queues` of all, per type": (3, each("list_queues")),
}
DEAD = {
    "`peek` of 10 dead": (20, ask("peek", TYPE, "E", 10, size=10)),
    "`redrive_all` of 10,000 of the many": (3, redrive_among),
}
READY_MANY = {"`purge` of 10,000 of the many": (1, purge_among("N"))}
GROWTHS = {
    "types": Growth(1_000, 100_000, grow_types, EVERY_TYPE),
    "groups": Growth(10_000, 1_000_000, grow_groups, BY_GROUP),
    "priorities": Growth(1, 65_536, grow_priorities, scales=False),
    "ready": Growth(20_000, 10_000_000, send, READY_MANY),
    "dead": Growth(20_000, 1_000_000, grow_dead, DEAD),
}


# ---- measuring -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """The options of the command line."""

    bench: Bench
    scale: float
    stale: bool
    local: bool

    def size(self, count: int, scales: bool = True) -> int:
        """A multiple of the batches with which the queue is filled."""
        if not scales:
            return count
        size = int(count * self.scale)
        return max(size // READY * READY, READY) if size > READY else size

    @contextmanager
    def filled(self, growth: Growth, count: int) -> Iterator[Client]:
        """A connection to a database of its own with `count` of them."""
        with self.bench.database() as url, self.bench.connect(url) as client:
            if self.stale:
                client.keep_statistics()
            growth.fill(client, count)
            if not self.stale:
                client.settle()
            yield client


def show(name: str, few: float, many: float, cpu: float | None) -> None:
    scale, unit = (1e6, "µs") if few < 0.0005 else (1e3, "ms")
    used = "" if cpu is None else f"{cpu:.2f}"
    print(
        f"| {name} | {many * scale:,.2f} {unit} | {few * scale:,.2f} {unit} | {many / few:.2f} | {used} | ≤ {LIMIT} |",
        flush=True,
    )


def measure(run: Run, name: str) -> None:
    growth = GROWTHS[name]
    few, many = growth.few, run.size(growth.many, growth.scales)
    with run.filled(growth, few) as small, run.filled(growth, many) as big:
        print(f"| **{many:,} {name}** compared with {few:,} | | | | | |", flush=True)
        for label, (calls, call) in (CALLS | growth.more).items():
            clocks = [Clock(client.process() if run.local else None) for client in (small, big)]
            for number in range(run.bench.repeat):
                for client, clock in zip((small, big), clocks, strict=True):
                    if number == 0 and calls > 1:
                        for _ in range(WARM_UP if calls >= WARM_UP else 1):
                            call(client, Clock(None))
                    for _ in range(calls):
                        call(client, clock)
            wall = [statistics.median(clock.wall) for clock in clocks]
            cpu = [statistics.median(clock.cpu) for clock in clocks]
            show(label, *wall, cpu[1] / cpu[0] if cpu[0] else None)


def measure_order(run: Run) -> None:
    """An ordered queue and a fair one with as many groups as messages, compared with an unordered one."""
    count = run.size(100_000)
    _compare(run, f"an ordered queue, {count:,} groups of 1** compared with an unordered one", count, grow_groups)
    _compare(run, f"a fair queue, {count:,} groups of 1** compared with an unordered one", count, grow_fair)


def _compare(run: Run, title: str, count: int, grow: Callable[[Client, int], None]) -> None:
    plain = Growth(count, count, send)
    ordered = Growth(count, count, grow)
    clocks: dict[str, tuple[Clock, Clock]] = {}
    for _ in range(run.bench.repeat):
        for place, growth in enumerate((plain, ordered)):
            for name, work in (("take_batch", lines.take), ("finish_batch", lines.finish)):
                with run.filled(growth, count) as client:
                    clock = clocks.setdefault(name, (Clock(None), Clock(None)))[place]
                    clock.process = client.process() if run.local else None
                    with clock.running(count):
                        done = work(client, lines.BATCH)
                    assert done == count, f"{done} of {count}"
                    clock = clocks.setdefault("send_batch", (Clock(None), Clock(None)))[place]
                    clock.process = client.process() if run.local else None
                    with clock.running(count):
                        send(client, count)
    print(f"| **{title} | | | | | |")
    for name, (few, many) in clocks.items():
        rates = [1 / statistics.median(clock.wall) for clock in (few, many)]
        ratio = statistics.median(a / b for a, b in zip(few.wall, many.wall, strict=True))
        cpu = [statistics.median(clock.cpu) for clock in (few, many)]
        used = f"{cpu[0] / cpu[1]:.2f}" if cpu[1] else ""
        print(f"| `{name}` | {rates[1]:,.0f}/s | {rates[0]:,.0f}/s | {ratio:.2f} | {used} | ≥ 0.5 |", flush=True)


def measure_blocked(run: Run) -> None:
    """The backlog of an ordered queue behind groups that all have an active message, compared with few such groups."""
    count = run.size(100_000)
    clocks: dict[str, tuple[Clock, Clock]] = {}
    for _ in range(run.bench.repeat):
        for name, work in (("take_batch", lines.take), ("finish_batch", lines.finish)):
            for place, groups in enumerate((100, count)):
                with run.filled(Growth(groups, groups, grow_blocked), groups) as client:
                    clock = clocks.setdefault(name, (Clock(None), Clock(None)))[place]
                    clock.process = client.process() if run.local else None
                    with clock.running(READY):
                        done = work(client, lines.BATCH)
                    assert done == READY, f"{done} of {READY}"
    print(f"| **a backlog of {READY:,} behind {count:,} blocked groups** compared with 100 | | | | | |")
    for name, (few, many) in clocks.items():
        wall = [statistics.median(clock.wall) for clock in (few, many)]
        cpu = [statistics.median(clock.cpu) for clock in (few, many)]
        show(f"`{name}` of {lines.BATCH}, per message", *wall, cpu[1] / cpu[0] if cpu[0] else None)


APART = {"order": measure_order, "blocked": measure_blocked}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="postgresql-15", choices=servers.names(), help="the server to start")
    parser.add_argument(
        "--database", metavar="URL", help="your own server; the account must be allowed to create databases"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="a factor for the large numbers, such as 0.1")
    parser.add_argument("--repeat", type=int, default=3, help="the number of rounds with few and many")
    parser.add_argument("--stale", action="store_true", help="use the statistics of empty tables")
    parser.add_argument("--only", choices=[*GROWTHS, *APART], action="append", help="these only")
    options = parser.parse_args()
    server = servers.external(options.database) if options.database else servers.make(options.server)
    [kind] = [k for k in KINDS if servers.product(server.name) in k.products]
    server.start()
    try:
        run = Run(Bench(server, kind, False, options.repeat), options.scale, options.stale, not options.database)
        with run.bench.connect(server.url) as client:
            print(f"{client.describe()}, {os.cpu_count()} processors\n")
        print("| call | many | few | ratio | of the server's processor time | target |\n" + "| --- " * 6 + "|")
        for name in options.only or [*GROWTHS, *APART]:
            if name in APART:
                APART[name](run)
            else:
                measure(run, name)
    finally:
        server.close()


if __name__ == "__main__":
    main()
