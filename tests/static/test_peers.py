"""The comparison with peers, as far as it runs without them: the report of missing ones, and the page."""

import json
import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).resolve().parents[2] / "benchmarks" / "peers"
sys.path.insert(0, str(PEERS))

import contenders  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402
import tally  # noqa: E402


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without npm and php, where nothing is installed."""
    monkeypatch.setattr(contenders, "FOLDER", tmp_path / "peers")
    monkeypatch.setattr(contenders, "LARAVEL", tmp_path / "absent")
    monkeypatch.setattr(contenders, "GEMS", tmp_path / "absent")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(contenders, "ROOT", tmp_path / "repository")
    monkeypatch.delenv("PGMQ_SQL", raising=False)
    monkeypatch.delenv("PGQUE_SQL", raising=False)
    return tmp_path


def test_a_contender_that_cannot_be_measured_is_named_with_the_package_to_install(bare: Path) -> None:
    found = {
        one.key: contenders.missing(one) or ""
        for parts in contenders.PARTS.values()
        for s in parts.values()
        for one in s
    }
    assert "apt-get install npm" in found["graphile"] and "apt-get install npm" in found["pg-boss"]
    assert "--install" in found["pgqueuer"] and "--install" in found["procrastinate"]
    assert "--install" in found["absurd"] and "--install" in found["absurd-sql"]
    assert "PGMQ_SQL" in found["pgmq"]
    assert "PGQUE_SQL" in found["pgque"] and "PGQUE_SQL" in found["pgque-coop"]
    assert "php" in found["laravel"] and "ruby-" in found["delayed-job"]
    assert not [found[key] for key in ("raw", "take", "finish", "list", "one", "runner", "rowqueue") if found[key]]


def test_the_sql_of_pgmq_may_be_a_file_of_the_user(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare / "mine.sql").write_text("SELECT 1")
    monkeypatch.setenv("PGMQ_SQL", str(bare / "mine.sql"))
    assert contenders.pgmq_sql() == "SELECT 1"
    assert contenders.missing(contenders.PGMQ) is None


def test_the_sql_of_pgque_is_named_or_beside_the_repository(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare / "pgque").mkdir()
    (bare / "pgque/pgque.sql").write_text("SELECT 1")
    assert contenders.pgque_sql() == "SELECT 1"
    (bare / "mine.sql").write_text("SELECT 2")
    monkeypatch.setenv("PGQUE_SQL", str(bare / "mine.sql"))
    assert contenders.pgque_sql() == "SELECT 2"
    assert contenders.missing(contenders.PGQUE) is None


def test_a_consumer_of_a_subscription_that_has_one_is_not_measured_with_four() -> None:
    [one, four] = [case for case in run.cases() if case.section == "sql" and case.size == 100]
    assert run.takes_part(contenders.PGQUE, one) and not run.takes_part(contenders.PGQUE, four)
    assert run.takes_part(contenders.PGQUE_COOP, four) and run.takes_part(contenders.TAKE, four)


def test_without_npm_the_installation_says_so(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contenders, "_run", lambda command: None)
    with pytest.raises(RuntimeError, match="npm is not on this machine"):
        contenders.install()


def test_versions_are_pinned() -> None:
    pinned = json.loads((PEERS / "package.json").read_text())["dependencies"]
    assert all(version[0].isdigit() for version in pinned.values())
    lines = [line for line in (PEERS / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert lines and all("==" in line for line in lines)


def test_every_contender_has_its_settings_in_the_report_and_each_case_its_texts() -> None:
    for engine, sections in contenders.PARTS.items():
        names = [name.lower() for name in contenders.SETTINGS[engine]]
        for some in sections.values():
            for one in some:
                label = one.label.lower()
                assert any(name in label for name in names) or "runner" in label or "plain" in label, label
        assert sections.keys() == report.TITLES.keys() == report.TEXTS.keys() == {case.section for case in run.cases()}


def test_messages_are_a_hundred_bytes() -> None:
    assert {len(tally.body(number)) for number in (0, 7, 1_000_000)} == {100}


def test_the_page_is_made_of_results_and_says_where_a_peer_is_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def entry(value: float, *more: float) -> dict[str, object]:
        return {"values": [value, *more], "messages": 1000}

    case = {"server": "postgresql-15", "version": "PostgreSQL 15", "section": "send", "case": "1", "date": "2026-01-02"}
    found = [{"raw": entry(1000), "rowqueue": entry(ours), "pgmq": entry(950)} for ours in (900, 800, 880, 860)]
    held = {"take": entry(1, 1.5, 1000), "pgmq": entry(1, 70, 1000)}
    results = [case | {"found": one} for one in found]
    results.append(case | {"section": "snapshot", "case": "200,000", "found": held})
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(report, "PAGE", tmp_path / "PEERS.md")
    (tmp_path / "results.json").write_text(json.dumps(results))
    page = report.write().read_text()
    assert "| rowqueue `send`, `send_batch` | 860 (0.86) |" in page  # the median of the last three
    assert "- Send, 1: pgmq `send`, `send_batch` 950/s, rowqueue 860/s" in page
    assert "| pgmq `read` + `delete` | 1.00¹ | 70.00 | 70.0 |" in page
    assert "- Under a held snapshot" not in page
    assert "2026-01-02" in page


def test_a_program_that_ends_too_early_is_an_error_with_its_last_words() -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no driver here')"]
    with pytest.raises(RuntimeError, match="no driver here"), run.Programs([command], {}):
        pass


def test_a_rate_is_from_the_first_to_the_last_of_all_processes() -> None:
    script = "print('ready', flush=True); input(); print('done', 50, {0}, {1}, flush=True)".format
    commands = [[sys.executable, "-c", script(*times)] for times in ((10.0, 14.0), (12.0, 15.0))]
    with run.Programs(commands, {}) as programs:
        programs.wait(100)
    assert programs.heard.rate() == 100 / (15 - 10)


def test_more_messages_than_were_sent_are_an_error() -> None:
    script = "print('ready', flush=True); input(); print('done', 101, 1, 2, flush=True)"
    with pytest.raises(RuntimeError, match="101 messages were handled of 100"):  # noqa: SIM117
        with run.Programs([[sys.executable, "-c", script]], {}) as programs:
            programs.wait(100)
