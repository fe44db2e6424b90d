"""A shell as the README and the guide for MySQL and MariaDB expect it."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from .mysql import LocalMySQL, programs


class Shell:
    """A shell with `runner` and with the server's own client under the name mysql, which logs in by its option file."""

    def __init__(self, server: LocalMySQL, folder: Path) -> None:
        home = programs(server.name)
        self._folder = folder
        self._give("mysql", home.program("mariadb" if home.is_mariadb else "mysql"))
        if not home.is_mariadb:
            self._give("mysqldump", home.program("mysqldump"))
        login = urlsplit(server.url)
        (folder / "my.cnf").write_text(
            f"[client]\nprotocol=tcp\nhost={login.hostname}\nport={login.port}\n"
            f'user={login.username}\npassword="{unquote(login.password or "")}"\n'
        )
        path = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
        self._environment = os.environ | {"PATH": path}

    def _give(self, name: str, command: list[str]) -> None:
        script = self._folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} --defaults-file={self._folder}/my.cnf "$@"\n')
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
