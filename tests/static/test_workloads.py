"""The workloads at a fixed offered rate: the open-loop sender, the latencies, the picture and the table."""

import json
import sys
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path += [str(BENCHMARKS), str(BENCHMARKS / "peers")]  # behind all others: `mysql` is also a package of a driver

import contenders  # noqa: E402
import tally  # noqa: E402
import workloads  # noqa: E402


def test_the_sender_offers_its_rate() -> None:
    slots = [*tally.slots(250, 2)]
    assert sum(len(some) for _, some in slots) == 500
    assert slots[-1][0] - slots[0][0] == pytest.approx(2 - tally.SLOT_SECONDS)
    assert {len(text) for _, some in slots for text in some} == {100}


def test_a_stalled_call_delays_no_due_time_and_drops_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    late: Counter[int] = Counter()
    monkeypatch.setattr(tally, "LATE", True)
    monkeypatch.setattr(tally, "_late", late)
    calls: list[int] = []

    def stall(some: list[str]) -> None:
        calls.append(len(some))
        if len(calls) == 1:
            time.sleep(0.2)
        tally.handled(some)

    tally.offer(stall, 1000, 0.3)
    assert sum(calls) == late.total() == 300
    # What became due in the 0.2 s of the first call was handled that much too late, though its own calls were fast.
    assert sum(count for step, count in late.items() if 10 ** (step / tally.STEPS) > 100_000) >= 100


def test_quantiles_of_latencies() -> None:
    def step(milliseconds: float) -> int:
        return round(tally.STEPS * workloads.math.log10(milliseconds * 1000))

    steps = {step(1): 98, step(50): 1, step(1000): 1}
    assert workloads.quantile(steps, 0.5) == pytest.approx(1, rel=0.06)
    assert workloads.quantile(steps, 0.99) == pytest.approx(50, rel=0.06)
    assert workloads.quantile(steps, 1) == pytest.approx(1000, rel=0.06)
    assert workloads.quantile({}, 0.5) is None


@pytest.fixture
def result() -> workloads.Result:
    found = workloads.Result("held", "pgmq", "PostgreSQL 15.18", "2026-01-02", "abc", 6)
    for second in range(1, 301):
        stalled = 100 <= second < 200
        late = (None, None) if stalled else (2.0, 9.0)
        done = 2000 * (100 if stalled else second)
        found.samples.append(workloads.Sample(second, 2000 * second, 2000 * second, done, *late, second, 2**20, 2**20))
    for number, phase in enumerate(workloads.WORKLOADS["held"].phases, 1):
        found.phases.append(workloads.summary(phase.name, number * 100, {132: 10}, found.samples[: number * 100]))
    return found


def test_the_picture_has_its_panels_and_breaks_a_line_when_nothing_is_handled(result: workloads.Result) -> None:
    text = workloads.draw("held", [result])
    drawn = ElementTree.fromstring(text)
    paths = [path for path in drawn.iter("{http://www.w3.org/2000/svg}path")]
    # The legend, a line per panel, and in the two panels of latencies a second one after the stall.
    assert len(paths) == 1 + len(workloads.PANELS) + 2
    assert "prefers-color-scheme:dark" in text
    assert "times divided by 6" in text


def test_results_are_kept_and_listed(result: workloads.Result, tmp_path: Path) -> None:
    workloads.store([result], tmp_path)
    assert json.loads((tmp_path / "workloads.json").read_text())[0]["contender"] == "pgmq"
    assert (tmp_path / "workloads-held.svg").exists()
    [kept] = workloads.load(tmp_path / "workloads.json")
    assert kept == result
    lines = [*workloads.table([kept])]
    assert len(lines) == 2 + 3
    assert {line.count("|") for line in lines} == {11}


def test_every_contender_has_a_colour_and_a_program() -> None:
    assert workloads.CONTENDERS.keys() == workloads.COLOURS.keys()
    for one, _ in workloads.CONTENDERS.values():
        assert contenders.program(one)
