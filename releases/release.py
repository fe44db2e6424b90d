"""Write a release of the version in pyproject.toml into dist/. Usage: make release

The SQL scripts, the wheel, the source archive and their checksums. It also cuts CHANGELOG.md. In releases/VERSION it
keeps the contract and the scripts, with which tests compare later versions, and what `runner sql --from` needs. It uses
no network, commits nothing, and ends with the next steps to do by hand. `--check` only checks whether a release can be
made.
"""

import argparse
import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import frozen
from rowqueue.databases import files, releases
from rowqueue.databases.base import GRANTS, MIGRATION
from rowqueue.install import apply as install
from rowqueue.install import contract

ROOT = Path(__file__).resolve().parents[1]
ENGINES = ("postgresql", "mysql", "sqlserver", "firebird")
_UNRELEASED = "## [Unreleased]\n"
_NEXT = """
Next, by hand:
1. Read CHANGELOG.md and `git status`, then keep them:
   git add CHANGELOG.md releases/{0} && git commit -m 'Release {0}' && git tag -a v{0} -m 'rowqueue {0}'
2. git push --follow-tags
3. Upload the wheel and the .tar.gz to the package index, and every file of dist/ to the page of the release.
4. Raise the version in pyproject.toml: the tests hold it to the contract of {0} from now on."""


class Refused(Exception):
    """The release cannot be made; the text says why and what to do."""


def version(root: Path) -> str:
    """The version in pyproject.toml."""
    return str(tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def notes(changelog: str) -> str:
    """The notes under Unreleased in the changelog. Raises Refused without such a heading."""
    if _UNRELEASED not in changelog:
        raise Refused(f"CHANGELOG.md: no line {_UNRELEASED.strip()!r}; add it above the notes of this release")
    return changelog.partition(_UNRELEASED)[2].partition("\n## ")[0].strip()


def cut(changelog: str, name: str, day: date) -> str:
    """The changelog with the notes under the version and the day, and an empty Unreleased above."""
    return changelog.replace(_UNRELEASED, f"{_UNRELEASED}\n## [{name}] - {day.isoformat()}\n", 1)


def check(root: Path) -> None:
    """Raises Refused when this tree cannot be released."""
    name, changelog = version(root), (root / "CHANGELOG.md").read_text("utf-8")
    if changed := _git(root, "status", "--porcelain"):
        raise Refused(f"the tree has changes; commit or remove them first:\n{changed}")
    try:
        number = frozen.number(name)
    except ValueError as error:
        raise Refused(f"pyproject.toml: {error}") from None
    kept = frozen.released(root / "releases")
    if f"## [{name}]" in changelog or _git(root, "tag", "--list", f"v{name}") or (root / "releases" / name).exists():
        raise Refused(f"{name} was released before; raise the version in pyproject.toml")
    if kept and number < frozen.number(kept[-1].name):
        raise Refused(f"{name} is lower than {kept[-1].name}; raise the version in pyproject.toml")
    if not re.search(r"^[-*] \S", notes(changelog), re.M):
        raise Refused("CHANGELOG.md: no notes under [Unreleased]; write what has changed, one line each")
    if broken := frozen.refused(root / "releases", name, contract.read(root / "procedures" / "contract.toml")):
        raise Refused("the contract is frozen:\n" + "\n".join(broken))


def write(root: Path, day: date) -> list[Path]:
    """Make the release; returns the files in dist/. After an error the tree is unchanged."""
    check(root)
    if contract.release() != version(root):
        raise Refused(f"rowqueue {contract.release()} is installed, not {version(root)}: pip install -e .")
    changelog, kept = root / "CHANGELOG.md", root / "releases" / version(root)
    before = changelog.read_text("utf-8")
    try:
        changelog.write_text(cut(before, kept.name, day), "utf-8")
        with TemporaryDirectory() as folder:
            made = Path(folder)
            _freeze(root, kept, made)
            _build(root, made)
            _sums(made)
            shutil.rmtree(root / "dist", ignore_errors=True)
            (root / "dist").mkdir()  # the temporary folder is private to its owner
            for path in made.iterdir():
                shutil.copy(path, root / "dist")
    except BaseException:
        changelog.write_text(before, "utf-8")
        shutil.rmtree(kept, ignore_errors=True)
        raise
    return sorted((root / "dist").iterdir())


def _freeze(root: Path, kept: Path, made: Path) -> None:
    """Keep the contract and the SQL scripts of the release. Every run writes the same bytes."""
    kept.mkdir()
    shutil.copy(root / "procedures" / "contract.toml", kept)
    (kept / "release.toml").write_text(content(), "utf-8")
    for engine in ENGINES:
        whole = _script(engine)
        (kept / f"rowqueue-{engine}.sql.gz").write_bytes(gzip.compress(whole, mtime=0))
        (made / f"rowqueue-{engine}.sql").write_bytes(whole)
        (made / f"rowqueue-{engine}-core.sql").write_bytes(_script(engine, areas=contract.CORE))
        for earlier in releases.earlier():
            (made / f"rowqueue-{engine}-from-{earlier}.sql").write_bytes(_script(engine, since=earlier))


def _script(engine: str, areas: Iterable[str] | None = None, since: str | None = None) -> bytes:
    """As `runner sql` prints it."""
    return "".join(f"{part}\n" for part in install.script(engine, areas, since)).encode()


def content() -> str:
    """What a database of this release has: its migrations, and the procedure files of each area."""
    lines = ["# What a database of this release has; `runner sql --from` reads it."]
    for engine in ENGINES:
        lines += ["", f"[{engine}.migrations]"]
        lines += [f'{file.name} = "{file.sha256}"' for file in install.files(engine) if file.kind == MIGRATION]
        lines += ["", f"[{engine}.procedures]"]
        for area in contract.load().areas:
            names = {path.stem for path in (files.procedures(engine) / area).rglob("*.sql")} - {GRANTS}
            lines.append(f"{area} = {json.dumps(sorted(names))}")
    return "\n".join([*lines, ""])


def _build(root: Path, made: Path) -> None:
    """Build the source archive, and the wheel from it. The wheel must equal the one built from the tree."""
    with TemporaryDirectory() as other:
        for arguments in ([made], [other, "--wheel"]):
            command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", *map(str, arguments), str(root)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise Refused(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
        [wheel] = made.glob("*.whl")
        if wheel.read_bytes() != (Path(other) / wheel.name).read_bytes():
            raise Refused(
                "the wheel from the source archive differs from the tree's; see [tool.hatch] in pyproject.toml"
            )


def _sums(made: Path) -> None:
    """As `sha256sum --check` reads them."""
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(made.iterdir())]
    (made / "SHA256SUMS").write_text("".join(lines))


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"git {arguments[0]}: {done.stderr.strip()}; a release is made in a checkout")
    return done.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only check whether a release can be made")
    only_check = parser.parse_args().check
    try:
        if only_check:
            check(ROOT)
            return 0
        made = write(ROOT, datetime.now(UTC).date())
    except Refused as refused:
        print(f"release: {refused}", file=sys.stderr)
        return 1
    print(f"dist/ has release {version(ROOT)}:", *(f"  {path.name}" for path in made), sep="\n")
    print(_NEXT.format(version(ROOT)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
