"""The languages that have a client in `examples/`: what each needs, on which products it works and how it starts.

    python3 tests/languages/languages.py

installs Debian's packages that are missing, when root. A new language is one more entry of LANGUAGES.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_STYLE = Path(__file__).resolve().parent / "style"
# What npm downloads and Go compiles stays there for the next run.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rowqueue-tests"
_GO_PACKAGES = "/usr/share/gocode"
_CRATES = "/usr/share/cargo/registry"
# Debian's Laravel, for the queue driver in examples/laravel.
LARAVEL = Path("/usr/share/php/Illuminate/autoload.php")
_LARAVEL_PACKAGE = "php-laravel-framework"
_JARS, _POSTGRESQL_JAR, _MARIADB_JAR = "/usr/share/java", "postgresql.jar", "mariadb-java-client.jar"


class Missing(Exception):
    """The language or one of its drivers is missing."""


@dataclass(frozen=True)
class Style:
    """The style checker of a language, its package, and its shell command."""

    program: str
    package: str
    check: str


@dataclass(frozen=True)
class Language:
    """`drivers`: for each product a command that succeeds where the language and the driver are there.

    `start` makes the program ready, perhaps in the folder that it is given, and returns the command that starts it.
    `style`'s command runs in the example's folder, fails where the style is another and says where.
    `batches`: its consumer finishes a batch as a whole. Otherwise it finishes each message when it is handled.
    """

    name: str
    packages: str
    drivers: Mapping[str, Sequence[str]]
    start: Callable[[Path], Sequence[str]]
    style: Style
    batches: bool = True

    def lacks(self, product: str) -> bool:
        try:
            return subprocess.run(self.drivers[product], capture_output=True).returncode != 0
        except FileNotFoundError:
            return True

    def missing(self) -> list[str]:
        """The packages that are missing."""
        packages = self.packages.split() if any(map(self.lacks, self.drivers)) else []
        return packages if shutil.which(self.style.program) else [*packages, self.style.package]


def _all_products(*command: str) -> dict[str, Sequence[str]]:
    return _drivers(command, command, command)


def _drivers(
    postgresql: Sequence[str], mysql: Sequence[str], firebird: Sequence[str] | None = None
) -> dict[str, Sequence[str]]:
    drivers = {"postgresql": postgresql, "mariadb": mysql, "mysql": mysql}
    return drivers | ({"firebird": firebird} if firebird else {})


def _script(*command: str) -> Callable[[Path], Sequence[str]]:
    """A file of `examples/` that needs no preparation."""
    return lambda folder: [*command[:-1], str(EXAMPLES / command[-1])]


def _node(folder: Path) -> Sequence[str]:
    """The example with npm's packages, which are installed once in a folder that all share who use the same ones."""
    shutil.copytree(EXAMPLES / "node", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    manifests = [folder / "package.json", folder / "rowqueue" / "package.json"]
    cache = CACHE / "node" / hashlib.md5(b"".join(path.read_bytes() for path in manifests)).hexdigest()
    with _locked(cache):
        shutil.copytree(folder, cache, dirs_exist_ok=True)
        _make("npm", "install", "--omit=dev", "--no-audit", "--no-fund", "--prefer-offline", folder=cache)
    (folder / "node_modules").mkdir()
    for package in (cache / "node_modules").iterdir():
        # The client itself is not the one in the shared folder, which may be of another checkout.
        source = folder / "rowqueue" if package.name == "rowqueue" else package
        (folder / "node_modules" / package.name).symlink_to(source)
    return ["node", str(folder / "queue.js")]


def _go_driver(path: str) -> Sequence[str]:
    return ["sh", "-c", f"command -v go && test -d {_GO_PACKAGES}/src/github.com/{path}"]


def _go(folder: Path) -> Sequence[str]:
    # Debian's packages are for builds without modules.
    environment = {"GO111MODULE": "off", "GOPATH": _GO_PACKAGES, "GOCACHE": str(CACHE / "go")}
    with _locked(CACHE / "go"):  # the first one compiles the drivers for all
        _make("go", "build", "-o", str(folder / "rowqueue"), ".", folder=EXAMPLES / "go", **environment)
    return [str(folder / "rowqueue")]


def _jars(*names: str) -> Sequence[str]:
    return ["sh", "-c", " && ".join(["command -v javac", *(f"test -f {_JARS}/{name}" for name in names)])]


def _java(folder: Path) -> Sequence[str]:
    """Compiled once; `java Queue.java` would compile it at each start."""
    path = f"{folder}:{_JARS}/{_POSTGRESQL_JAR}:{_JARS}/{_MARIADB_JAR}"
    lint = ("-Xlint:all,-serial", "-Werror")
    _compile("javac", *lint, "-cp", path, "-d", str(folder), "Queue.java", folder=EXAMPLES / "java")
    # Java reads its arguments in the character set of the locale.
    return ["env", "LC_ALL=C.UTF-8", "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", path, "Queue"]


def _crates(*names: str) -> Sequence[str]:
    return ["sh", "-c", " && ".join(["command -v cargo", *(f"ls -d {_CRATES}/{name}-[0-9]*" for name in names)])]


def _rust(folder: Path) -> Sequence[str]:
    """With Debian's crates in place of crates.io's; a later run compiles the example only."""
    shutil.copytree(EXAMPLES / "rust", folder, dirs_exist_ok=True)
    crates = {"crates-io.replace-with": "debian", "debian.directory": _CRATES}
    config = [word for name, value in crates.items() for word in ("--config", f'source.{name}="{value}"')]
    with _locked(CACHE / "rust"):
        _compile("cargo", "build", "--offline", "--target-dir", str(CACHE / "rust"), *config, folder=folder)
        shutil.copy(CACHE / "rust" / "debug" / "rowqueue", folder)
    return [str(folder / "rowqueue")]


def _make(*command: str, folder: Path, **environment: str) -> None:
    done = subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"{' '.join(command[:2])}: {done.stderr.strip()[-500:]}")


def _compile(*command: str, folder: Path) -> None:
    """An example that does not compile is no language that is missing."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """A lock: tests that run at the same time must not write to the folder at the same time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


LANGUAGES = (
    Language(
        "node",
        "nodejs npm",
        _all_products("sh", "-c", "command -v node && command -v npm"),
        _node,
        Style("npx", "npm", "npx --yes --prefer-offline standard@17 '**/*.{js,cjs,mjs}'"),
        batches=False,
    ),
    Language(
        "php",
        "php-cli php-pgsql php-mysql php-interbase",
        _drivers(
            ("php", "-r", "exit((int) !(extension_loaded('pdo_pgsql') && extension_loaded('pcntl')));"),
            ("php", "-r", "exit((int) !(extension_loaded('pdo_mysql') && extension_loaded('pcntl')));"),
            ("php", "-r", "exit((int) !(extension_loaded('pdo_firebird') && extension_loaded('pcntl')));"),
        ),
        _script("php", "php/queue.php"),
        Style("phpcs", "php-codesniffer", f"phpcs -q --standard={_STYLE}/phpcs.xml ."),
    ),
    Language(
        "perl",
        "libdbd-pg-perl libdbd-mariadb-perl libdbd-firebird-perl",
        _drivers(("perl", "-MDBD::Pg", "-e1"), ("perl", "-MDBD::MariaDB", "-e1"), ("perl", "-MDBD::Firebird", "-e1")),
        _script("perl", "perl/rowqueue.pl"),
        Style("perltidy", "perltidy", f"perltidy --profile={_STYLE}/perltidyrc --assert-tidy -st *.pl >/dev/null"),
    ),
    Language(
        "ruby",
        "ruby ruby-pg ruby-mysql2",
        _drivers(("ruby", "-rpg", "-e1"), ("ruby", "-rmysql2", "-e1")),
        _script("ruby", "-w", "ruby/rowqueue.rb"),
        Style("rubocop", "rubocop", f"ruby -wc *.rb && rubocop --config {_STYLE}/rubocop.yml --cache false ."),
    ),
    Language(
        "go",
        "golang-go golang-github-lib-pq-dev golang-github-go-sql-driver-mysql-dev",
        _drivers(_go_driver("lib/pq"), _go_driver("go-sql-driver/mysql")),
        _go,
        Style("gofmt", "golang-go", "gofmt -d . | { ! grep ''; }"),
    ),
    Language(
        "java",
        "openjdk-17-jdk-headless libpostgresql-jdbc-java libmariadb-java",
        _drivers(_jars(_POSTGRESQL_JAR), _jars(_POSTGRESQL_JAR, _MARIADB_JAR)),  # PostgreSQL's is needed to compile
        _java,
        Style("checkstyle", "checkstyle", "checkstyle -c /google_checks.xml . | { ! grep '^\\['; }"),
    ),
    Language(
        "rust",
        "cargo librust-tokio-postgres-dev librust-serde-json-dev",
        {"postgresql": _crates("tokio-postgres", "serde_json")},
        _rust,
        Style("rustfmt", "rustfmt", "rustfmt --check --edition 2021 src/*.rs"),
    ),
)

# A framework with an application in `examples/`, which has tests of its own. Debian's package `rails` brings a browser.
RAILS = Language(
    "rails",
    "ruby-railties ruby-activerecord ruby-actionmailer ruby-pg ruby-mysql2",
    _drivers(
        ("ruby", "-rrails", "-ractive_record", "-raction_mailer", "-rpg", "-e1"),
        ("ruby", "-rrails", "-ractive_record", "-raction_mailer", "-rmysql2", "-e1"),
    ),
    lambda folder: ["ruby"],
    Style("rubocop", "rubocop", f"rubocop --config {_STYLE}/rubocop.yml --cache false . ../../tests/languages/rails"),
)
ALL = (*LANGUAGES, RAILS)


def install() -> None:
    """Install what is missing, or say what the tests skip."""
    missing = {language.name: packages for language in ALL if (packages := language.missing())}
    if not LARAVEL.exists():
        missing["laravel"] = [_LARAVEL_PACKAGE]
    packages = sorted({package for of_language in missing.values() for package in of_language})
    if not packages:
        return
    names = ", ".join(missing)
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print(f"The tests of {names} are skipped: only root can apt-get install {' '.join(packages)}", file=sys.stderr)
        return
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        if subprocess.run(["apt-get", *command], env=environment, stdout=subprocess.DEVNULL).returncode != 0:
            print(f"Could not install {' '.join(packages)}: the tests of {names} are skipped", file=sys.stderr)
            return


if __name__ == "__main__":
    install()
