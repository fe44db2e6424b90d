"""make release: what it refuses, what it writes, and that its wheel gives the command `runner`."""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from datetime import date
from functools import partial
from pathlib import Path

import pytest
import release
from rowqueue.databases import Database
from rowqueue.install import contract
from support.processes import COMMAND

ROOT = Path(__file__).resolve().parents[2]
DAY = date(2026, 12, 24)
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A queue.\n\n## [0.1.0] - 2026-01-01\n\n- The first.\n"

run = partial(subprocess.run, check=True, capture_output=True, text=True, timeout=200)


def git(folder: Path, *arguments: str) -> None:
    run(["git", "-c", "user.name=test", "-c", "user.email=test@example.org", *arguments], cwd=folder)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "x")


# ---- what is refused


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository, as far as a release is checked: 0.1.0 was released, 0.2.0 is next."""
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    for folder in ("procedures", "releases/0.1.0"):
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(contract.sql_root() / "procedures" / "contract.toml", tmp_path / folder)
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def test_a_clean_tree_with_notes_and_a_new_version_can_be_released(small: Path) -> None:
    release.check(small)


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("pyproject.toml", "0.2.0", "0.1.0", "0.1.0 was released before; raise the version"),
        ("pyproject.toml", "0.2.0", "0.0.9", "0.0.9 is lower than 0.1.0"),
        ("pyproject.toml", "0.2.0", "0.2", "'0.2' must have the form 1.2.3"),
        ("CHANGELOG.md", "## [0.1.0]", "## [0.2.0]", "0.2.0 was released before"),
        ("CHANGELOG.md", "- A queue.\n", "", "no notes under [Unreleased]"),
        ("CHANGELOG.md", "## [Unreleased]\n", "", "no line '## [Unreleased]'"),
        ("procedures/contract.toml", 'name = "cancel"', 'name = "remove"', "cancel: the procedure was removed"),
    ],
)
def test_a_release_is_refused_with_what_to_do(small: Path, file: str, old: str, new: str, told: str) -> None:
    replaced(small / file, old, new)
    commit(small)
    with pytest.raises(release.Refused, match=re.escape(told)):
        release.check(small)


@pytest.mark.parametrize("file", ["CHANGELOG.md", "new.py"])
def test_a_tree_with_changes_is_refused_and_they_are_named(small: Path, file: str) -> None:
    with (small / file).open("a") as changed:
        changed.write("\n")
    with pytest.raises(release.Refused, match=rf"the tree has changes; commit or remove them first:\n.*{file}"):
        release.check(small)


def test_a_version_that_has_a_tag_is_refused(small: Path) -> None:
    git(small, "tag", "v0.2.0")
    with pytest.raises(release.Refused, match=r"0\.2\.0 was released before"):
        release.check(small)


def test_a_folder_that_is_no_checkout_is_refused(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(small / ".git")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(release.Refused, match="a release is made in a checkout"):
        release.check(small)


def test_scripts_that_would_record_another_version_are_refused(small: Path) -> None:
    with pytest.raises(release.Refused, match=r"is installed, not 0\.2\.0: pip install -e \."):
        release.write(small, DAY)


@pytest.mark.level(3)
def test_after_an_error_the_tree_is_as_before(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The small repository has nothing that could be built."""
    monkeypatch.setattr(contract, "release", lambda: "0.2.0")
    before = (small / "CHANGELOG.md").read_text()
    with pytest.raises(release.Refused, match="-m build"):
        release.write(small, DAY)
    assert (small / "CHANGELOG.md").read_text() == before
    assert not (small / "releases" / "0.2.0").exists() and not (small / "dist").exists()


def test_the_notes_get_under_the_version_and_its_day() -> None:
    cut = release.cut(CHANGELOG, "0.2.0", DAY)
    assert cut.startswith("# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-24\n\n### Added\n\n- A queue.\n")
    assert cut.endswith("## [0.1.0] - 2026-01-01\n\n- The first.\n")
    assert release.notes(cut) == ""


# ---- the files of a release


@pytest.mark.level(3)
def test_a_release_has_everything_in_dist_and_freezes_the_contract(tmp_path: Path) -> None:
    """In a copy of this tree, by its own command."""
    for name in run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT).stdout.splitlines():
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    replaced(tmp_path / "pyproject.toml", f'version = "{release.version(ROOT)}"', 'version = "77.0.0"')
    # An earlier release of the same SQL, with one procedure more.
    earlier = tmp_path / "releases" / "76.0.0"
    earlier.mkdir()
    (earlier / "release.toml").write_text(release.content().replace("= [", '= ["old_helper", '))
    shutil.copy(ROOT / "procedures" / "contract.toml", earlier)
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    # As `pip install` records the new version.
    installed = tmp_path / ".git" / "installed"
    (installed / "rowqueue-77.0.0.dist-info").mkdir(parents=True)
    (installed / "rowqueue-77.0.0.dist-info" / "METADATA").write_text("Name: rowqueue\nVersion: 77.0.0\n")
    path = os.pathsep.join(map(str, (installed, tmp_path / "runner")))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "releases/release.py"]
    shown = run(command, cwd=tmp_path, env=environment).stdout

    dist, kept = tmp_path / "dist", tmp_path / "releases" / "77.0.0"
    wheel, archive = "rowqueue-77.0.0-py3-none-any.whl", "rowqueue-77.0.0.tar.gz"
    engines = [path.name for path in (ROOT / "migrations").iterdir()]
    options = {"": [], "-core": ["--areas", "queue"], "-from-76.0.0": ["--from", "76.0.0"]}
    scripts = {f"rowqueue-{engine}{suffix}.sql": engine for engine in engines for suffix in options}
    assert {path.name for path in dist.iterdir()} == {wheel, archive, "SHA256SUMS", *scripts}
    sums = dict(line.split("  ")[::-1] for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert sums == {n: hashlib.sha256((dist / n).read_bytes()).hexdigest() for n in {wheel, archive, *scripts}}
    page = (ROOT / "docs" / "start" / "install.md").read_text("utf-8")
    [block] = re.findall(r"^sha256sum .*$", page, re.M)
    assert run(["sh", "-c", block], cwd=dist).stdout.count(": OK\n") == len(sums)
    unpacked = tmp_path / ".git" / "wheel"
    with zipfile.ZipFile(dist / wheel) as opened:
        opened.extractall(unpacked)
    from_wheel = environment | {"PYTHONPATH": str(unpacked)}
    for name, engine in scripts.items():
        text = (dist / name).read_text("utf-8")
        [more] = [more for suffix, more in options.items() if name == f"rowqueue-{engine}{suffix}.sql"]
        assert text == run([*COMMAND, "sql", "--database", engine, *more], env=from_wheel, cwd=dist).stdout
        assert ("old_helper" in text, "'77.0.0'" in text) == ("--from" in more, True)
    for engine in engines:
        whole = gzip.decompress((kept / f"rowqueue-{engine}.sql.gz").read_bytes())
        assert whole == (dist / f"rowqueue-{engine}.sql").read_bytes()
    names = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert {name for name in names if "/releases/" in name} == {
        f"rowqueue/sql/releases/{version}/release.toml" for version in ("76.0.0", "77.0.0")
    }
    unknown = [*COMMAND, "sql", "--database", "mysql", "--from", "77.0.0"]
    refused = subprocess.run(unknown, env=from_wheel, cwd=dist, capture_output=True, text=True)
    assert refused.returncode == 2 and "no release before 77.0.0; known: 76.0.0" in refused.stderr
    assert (kept / "contract.toml").read_bytes() == (ROOT / "procedures" / "contract.toml").read_bytes()
    sql = {path.relative_to(ROOT).as_posix() for folder in ("migrations", "procedures") for path in _files(folder)}
    assert {f"rowqueue/sql/{path}" for path in sql} <= names
    with tarfile.open(dist / archive) as opened:
        packed = {name.partition("/")[2] for name in opened.getnames()}
    tracked = run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=tmp_path).stdout.split()
    assert set(tracked) <= packed and "releases/77.0.0/contract.toml" in packed
    assert "## [77.0.0] - 20" in (tmp_path / "CHANGELOG.md").read_text("utf-8")
    for step in ("git tag -a v77.0.0", "git push", "Upload", "Raise the version"):
        assert step in shown

    commit(tmp_path)
    again = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert again.returncode == 1 and again.stderr.startswith("release: 77.0.0 was released before"), again.stderr


def _files(folder: str) -> list[Path]:
    return [path for path in (ROOT / folder).rglob("*") if path.is_file()]


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """A folder with the wheel of this tree in dist/."""
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(ROOT)])
    return tmp_path


@pytest.mark.level(3)
@pytest.mark.product("postgresql")
def test_the_wheel_installs_into_an_empty_environment_and_gives_the_command(
    dist: Path, empty_database: Database
) -> None:
    """An environment of its own, and the wheel with one driver."""
    [wheel] = (dist / "dist").glob("rowqueue-*.whl")
    run([sys.executable, "-m", "venv", "own"], cwd=dist)
    run(["own/bin/pip", "install", "-q", "--disable-pip-version-check", f"{wheel}[postgresql]"], cwd=dist)

    def runner(*arguments: str) -> str:
        return run(["own/bin/runner", *arguments], cwd=dist).stdout

    assert "Usage: runner" in runner("--help") and "Usage: runner demo" in runner("demo", "--help")
    printed = runner("sql", "--database", "postgresql")
    assert printed == run([*COMMAND, "sql", "--database", "postgresql"]).stdout and "CREATE" in printed
    assert "applied" in runner("apply", "--database", empty_database.url)
    assert "nothing to do" in runner("apply", "--database", empty_database.url)


@pytest.mark.level(3)
@pytest.mark.parametrize("tool", ["pipx", "uv tool"])
def test_the_wheel_is_installed_as_its_page_says(tool: str, dist: Path) -> None:
    name = tool.split()[0]
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    page = (ROOT / "docs" / "start" / "install.md").read_text("utf-8")
    [line] = re.findall(rf"^{tool} install .*?(?=\s+#|$)", page, re.M)
    places = {f"{key}_BIN_DIR": str(dist / "bin") for key in ("PIPX", "UV_TOOL")}
    places |= {"PIPX_HOME": str(dist / "pipx"), "UV_TOOL_DIR": str(dist / "uv")}
    run(["sh", "-e", "-c", line], cwd=dist, env=os.environ | places)
    assert "Usage: runner" in run([str(dist / "bin" / "runner"), "--help"]).stdout
