"""The quick start of the README for Python, done as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rowqueue.databases import Database

pytestmark = pytest.mark.one_version

README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")


def block(language: str, start: str) -> str:
    """The block of the README that begins with `start`."""
    found = re.search(rf"^```{language}\n({re.escape(start)}.*?)^```$", README, re.M | re.S)
    assert found, start
    return found[1]


def test_the_quick_start_delivers_retries_discards_and_redrives(empty_database: Database, tmp_path: Path) -> None:
    (tmp_path / "mail.py").write_text(block("python", "# mail.py"))
    environment = os.environ | {
        "RUNNER_DATABASE": empty_database.url,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["sh", "-e", "-c", block("sh", "runner apply")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    for line in ("2 sent", "delivered to ada@example.org", "delivered to busy@example.org", "1 redriven"):
        assert line in done.stdout.splitlines(), done.stdout
    assert "no such mailbox" in done.stdout.partition("1 redriven")[0]
    session = empty_database.connect("test")
    try:
        left = session.call("peek", "email", "N")
    finally:
        session.close()
    assert [row["body"] for row in left] == ['{"to":"nobody@gone.example"}']
