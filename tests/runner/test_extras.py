"""What is installed only with an extra of the package: without it, the rest works, and what needs it says so."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest
from rowqueue import Consumer
from rowqueue.cli import output
from rowqueue.databases import Database


@pytest.mark.parametrize(
    ("package", "words", "extra"),
    [("prometheus_client", "exporter", "metrics"), ("uvicorn", "web", "web"), ("textual", "top", "top")],
)
def test_a_command_without_its_extra_says_what_to_install(package: str, words: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None; sys.argv = ['runner', {words!r}]\n"
        "from rowqueue.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    said = f"runner: runner {words} needs {package}: pip install '.[{extra}]' in the checkout of rowqueue\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.any_engine
def test_a_health_port_without_its_extra_says_what_to_install(
    installed_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("prometheus_client")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "rowqueue.extras.health", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    consumer = Consumer(installed_database.url, "email", print, health_port=0, drain=True)
    with pytest.raises(ValueError, match=r"^health_port: needs prometheus_client: pip install '\.\[metrics\]'"):
        consumer.run()


def test_tables_are_plain_text_without_rich(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("rich", "rich.console"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    found = [
        {"type": "email", "ready": 12, "at": datetime(2026, 1, 2, tzinfo=UTC)},
        {"type": "x", "ready": 3, "at": None},
    ]
    output.rows(found, ["type", "ready", "at"], False)
    assert capsys.readouterr().out == ("type   ready  at\nemail  12     2026-01-02 00:00:00\nx      3\n")
