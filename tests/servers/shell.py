"""A shell as the README and the guides for MySQL, MariaDB and Firebird expect it."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from .firebird import LocalFirebird
from .mysql import LocalMySQL, programs


class Shell:
    """A shell with `runner` and the server's own client under its usual name, logged in without a prompt."""

    def __init__(self, server: LocalMySQL | LocalFirebird, folder: Path) -> None:
        self._folder = folder
        path = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
        self._environment = os.environ | {"PATH": path}
        if isinstance(server, LocalFirebird):
            self._give_isql(server)
        else:
            self._give_mysql(server)

    def _give_mysql(self, server: LocalMySQL) -> None:
        home = programs(server.name)
        self.log_in(server.url)
        option = f"--defaults-file={self._folder / 'my.cnf'}"
        self._give("mysql", [*home.program("mariadb" if home.is_mariadb else "mysql"), option])
        if not home.is_mariadb:
            self._give("mysqldump", [*home.program("mysqldump"), option])

    def log_in(self, url: str) -> None:
        """From now on `mysql` connects as the user of this URL."""
        login = urlsplit(url)
        (self._folder / "my.cnf").write_text(
            f"[client]\nprotocol=tcp\nhost={login.hostname}\nport={login.port}\n"
            f'user={login.username}\npassword="{unquote(login.password or "")}"\n'
        )

    def _give_isql(self, server: LocalFirebird) -> None:
        command, environment = server.isql
        words = ["env", *(f"{key}={value}" for key, value in environment.items()), *command]
        for name in ("isql", "isql-fb"):  # the project's name and Debian's
            self._give(name, words)
        for name in ("gbak", "gfix"):
            self._give(name, [*words[:-1], str(Path(words[-1]).with_name(name))])

    def _give(self, name: str, command: list[str]) -> None:
        script = self._folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        script.chmod(0o755)

    def __call__(self, command: str, text: str = "") -> str:
        """Run a command, which must succeed in silence, and return what it prints."""
        done = subprocess.run(
            ["sh", "-e", "-c", command],
            cwd=self._folder,
            env=self._environment,
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0 and not done.stderr, done.stderr or done.stdout
        return done.stdout
