"""MariaDB and MySQL for the tests: Debian's packages of several releases, unpacked under .servers/ and not installed.

    python3 tests/servers/fetch.py

apt-get resolves and downloads with a state of its own, from the machine's own mirror, and checks the signatures with
the machine's own keys; dpkg -x unpacks; the programs run through the unpacked loader and libraries, so that they fit
any release. Nothing of it needs root or touches what is installed. What is there already stays; a newer package comes
when the folder is deleted.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".servers"
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_ATTEMPTS = 3


@dataclass(frozen=True)
class Build:
    """What a server is made of: a release of Debian and the stem of its packages."""

    release: str
    stem: str

    @property
    def packages(self) -> list[str]:
        return [f"{self.stem}-server-core", f"{self.stem}-client-core"]


BUILDS = {
    "mariadb-10.11": Build("bookworm", "mariadb"),
    "mariadb-11.8": Build("trixie", "mariadb"),
    "mysql-9": Build("sid", "mysql"),
}


@dataclass(frozen=True)
class Home:
    """An unpacked server; `data` is the data directory of a server that has never been used."""

    path: Path

    @property
    def data(self) -> Path:
        return self.path / "data"

    def program(self, name: str) -> list[str]:
        """The beginning of a command: the unpacked loader, its libraries and a program."""
        # Up to Debian 12 some libraries lie beside /usr.
        libraries = [path for top in ("usr/lib", "lib") for path in (self.path / top).glob("*-linux-gnu")]
        loader = _first("ld-linux*.so.*", *libraries)
        found = _first(name, self.path / "usr/sbin", self.path / "usr/bin")
        return [str(loader), "--library-path", ":".join(map(str, libraries)), str(found)]

    def server(self) -> list[str]:
        """The beginning of a command that starts the server's program, without any settings file of the machine."""
        return [
            *self.program("mariadbd" if self.is_mariadb else "mysqld"),
            "--no-defaults",
            f"--basedir={self.path / 'usr'}",
            f"--lc-messages-dir={self.messages}",
            f"--character-sets-dir={self.messages / 'charsets'}",
            f"--plugin-dir={self.plugins}",
        ]

    @property
    def is_mariadb(self) -> bool:
        return (self.path / "usr/sbin/mariadbd").exists()

    @property
    def messages(self) -> Path:
        return _first("*/english/errmsg.sys", self.path / "usr/share").parents[1]

    @property
    def plugins(self) -> Path:
        return _first("**/plugin", self.path / "usr/lib")


def _first(pattern: str, *folders: Path) -> Path:
    for folder in folders:
        for path in folder.glob(pattern):
            return path
    raise FileNotFoundError(f"no {pattern} in {', '.join(map(str, folders))}")


def home(name: str) -> Home | None:
    """The server of that name, or None when it has not been fetched."""
    path = FOLDER / name
    return Home(path) if path.is_dir() else None


def mirrors() -> list[str]:
    """Where this machine gets its own release from."""
    wanted = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    fields = "$(REPO_URI) $(RELEASE) $(CODENAME) $(COMPONENT)"
    command = ["apt-get", "indextargets", "--format", fields, "Created-By: Packages"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    targets = [line.split() for line in lines]
    found = [uri for uri, *releases, component in targets if component == "main" and wanted in releases]
    return list(dict.fromkeys(found))


def _run(*command: object, input: str | None = None) -> None:
    """Run a command; what it says is told when it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, input=input, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise OSError(f"{words[0]} ended with status {done.returncode}: {(done.stdout + done.stderr)[-800:]}")


def download(build: Build, mirror: str, work: Path) -> list[Path]:
    """Fetch a build's packages and everything they need, as if nothing at all were installed."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    (work / "status").touch()
    keys = f"[signed-by={_KEYS}] " if _KEYS.exists() else ""
    (work / "sources.list").write_text(f"deb {keys}{mirror} {build.release} main\n")
    settings = {
        "Dir::State": work / "state",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "Dir::Etc::SourceList": work / "sources.list",
        "Dir::Etc::SourceParts": "-",
        "Dir::Etc::Preferences": "-",
        "Dir::Etc::PreferencesParts": "-",
        "Acquire::Languages": "none",
        "Acquire::Retries": 3,
        "APT::Sandbox::User": "root",  # apt's own user may have no way into this folder
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    _run("apt-get", "-qq", *options, "update")
    _run("apt-get", "-qq", *options, "install", "--yes", "--download-only", "--no-install-recommends", *build.packages)
    return sorted((work / "cache" / "archives").glob("*.deb"))


def initialize(made: Home) -> None:
    """Make the data directory that every server of the tests begins with a copy of."""
    made.data.mkdir()
    command = [*made.server(), f"--datadir={made.data}", *(["--user=root"] if os.geteuid() == 0 else [])]
    if not made.is_mariadb:
        _run(*command, "--initialize-insecure")
        (made.data / "auto.cnf").unlink()  # the server's own number: each copy makes its own
        return
    # What mariadb-install-db does, which cannot run through another loader.
    share = made.messages
    prefix = "mariadb" if (share / "mariadb_system_tables.sql").exists() else "mysql"
    parts = [f"{prefix}_system_tables", f"{prefix}_performance_tables", f"{prefix}_system_tables_data"]
    parts += ["fill_help_tables", "maria_add_gis_sp_bootstrap", f"{prefix}_sys_schema"]
    text = "".join((share / f"{part}.sql").read_text("utf-8") for part in parts)
    settings = ["--bootstrap", "--max-allowed-packet=8M", "--skip-log-error"]
    start = "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL, @skip_auth_anonymous = 1;\n"
    _run(*command, *settings, input=start + text)


def fetch(name: str) -> None:
    """Fetch and unpack one server; the folder appears when all of it is there."""
    build = BUILDS[name]
    FOLDER.mkdir(exist_ok=True)
    for mirror in mirrors() or [""]:
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=FOLDER) as folder:
            work = Path(folder)
            for package in download(build, mirror, work):
                _run("dpkg", "-x", package, work / "root")
            initialize(Home(work / "root"))
            (work / "root").chmod(0o755)
            (work / "root").rename(FOLDER / name)
            return


def _attempt(name: str) -> str | None:
    """Fetch a server, several times if need be; returns why it could not be done."""
    why = ""
    for attempt in range(_ATTEMPTS):
        try:
            fetch(name)
            return None
        except OSError as error:
            why = str(error)
        if home(name):  # another process was faster
            return None
        time.sleep(2 * attempt)
    return f"could not fetch {name}; the tests on it are skipped: {why}"


def main() -> int:
    missing = [name for name in BUILDS if not home(name)]
    if missing and not (shutil.which("apt-get") and shutil.which("dpkg")):
        print(f"fetch: no Debian, no {', '.join(missing)}; the tests on them are skipped", file=sys.stderr)
        return 1
    with ThreadPoolExecutor() as pool:
        failed = [why for why in pool.map(_attempt, missing) if why]
    for why in failed:
        print(f"fetch: {why}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
