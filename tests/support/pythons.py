"""A virtual environment with Django 6, which needs a later Python than the tests themselves."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FOLDER = ROOT / "build" / "django-6"  # kept for the next run
_NAMES = ("python3.13", "python3.12")
_CHECK = "import ensurepip, sys; sys.exit(sys.version_info < (3, 12))"


class Missing(Exception):
    """There is no Python 3.12 or later."""


class Broken(Exception):
    """The environment could not be made."""


def with_django_6() -> str:
    """The interpreter of an environment that has the rowqueue of this checkout and the newest Django 6."""
    python = _later_python()
    wanted = "\n".join([python, sys.version, (ROOT / "pyproject.toml").read_text()])
    stamp = _FOLDER / "installed"
    _FOLDER.parent.mkdir(exist_ok=True)
    with _FOLDER.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that run at the same time make one environment
        if not stamp.exists() or stamp.read_text() != wanted:
            _run(python, "-m", "venv", "--clear", str(_FOLDER))
            pip = (str(_FOLDER / "bin" / "pip"), "install", "-q", "--disable-pip-version-check")
            _run(*pip, "-e", f"{ROOT}[postgresql,mysql]", "Django>=6,<7")
            stamp.write_text(wanted)
    return str(_FOLDER / "bin" / "python")


def _later_python() -> str:
    for python in _candidates():
        try:
            if subprocess.run([python, "-c", _CHECK], capture_output=True).returncode == 0:
                return python
        except OSError:
            continue
    tried = os.environ.get("TEST_PYTHON") or f"{' and '.join(_NAMES)}, on PATH and in pyenv"
    raise Missing(f"Django 6 needs Python 3.12 or later with venv: tried {tried}. TEST_PYTHON names another one")


def _candidates() -> Iterator[str]:
    """Without TEST_PYTHON also the versions of pyenv that are not chosen, whose names on PATH do not start them."""
    if named := os.environ.get("TEST_PYTHON"):
        yield named
        return
    for name in _NAMES:
        yield name
        try:
            found = subprocess.run(["pyenv", "whence", "--path", name], capture_output=True, text=True)
        except OSError:
            continue
        yield from found.stdout.splitlines()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Broken(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
