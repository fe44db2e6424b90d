"""Firebird's client library, which the driver needs: the system's, or the one in the package firebird-embedded."""

import ctypes
import os
import signal
import threading
import warnings
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from firebird.driver import Error, driver_config
from firebird.driver.fbapi import get_api, has_api, load_api
from firebird.driver.provider import find_library

from ..base import DatabaseError
from .errors import line

_LIBRARY = "FIREBIRD_CLIENT_LIBRARY"
_loading = threading.Lock()
_SIGACTION_BYTES = 1_024  # more than any system's struct sigaction has


def load(embedded: bool) -> None:
    """Load the client library, once per process. Raises a DatabaseError that says what to install."""
    with _loading:
        if has_api():
            return
        # The library warns about handles of a lost connection.
        warnings.filterwarnings("ignore", module=r"firebird\.driver")
        named = os.environ.get(_LIBRARY)
        has_wheel = _has_wheel()
        found = bool(driver_config.fb_client_library.value or find_library("fbclient"))
        try:
            if named:
                _preload(Path(named).parent)
                load_api(named)
            elif has_wheel and (embedded or not found):
                _load_wheel()
            elif found:
                load_api()
            else:
                raise DatabaseError(
                    "no Firebird client library: install your system's (libfbclient2), or pip install"
                    f" firebird-embedded, or name one in {_LIBRARY}"
                )
        except (OSError, RuntimeError) as error:
            hint = ": apt-get install libtommath1" if "libtommath" in str(error) else ""
            raise DatabaseError(f"Firebird client library: {line(error)}{hint}") from error
        if os.name == "posix":
            _keep_signals()


def _keep_signals() -> None:
    """Leave SIGINT and SIGTERM to the program: at its first call, the library takes them over.

    At a signal, it ends all connections of the process, also those of running handlers. A main thread that waits would
    not wake up, because the library's handler restarts the wait.
    """
    system = ctypes.CDLL(None)
    actions = {n: ctypes.create_string_buffer(_SIGACTION_BYTES) for n in (signal.SIGINT, signal.SIGTERM)}
    for number, action in actions.items():
        system.sigaction(number, None, action)
    # The parameters are not valid: the library connects to nothing.
    with suppress(Error), get_api().master.get_dispatcher() as dispatcher:
        dispatcher.attach_database("", b"\xff", "utf-8")
    for number, action in actions.items():
        system.sigaction(number, action, None)


def _has_wheel() -> bool:
    try:
        return find_spec("firebird.embedded") is not None
    except ModuleNotFoundError:
        return False


def _load_wheel() -> None:
    """Load the library of firebird-embedded, after two libraries that it needs and would not find."""
    from firebird.embedded.provider import FirebirdProvider

    provider = FirebirdProvider()
    _preload(provider.root)
    load_api(provider)


def _preload(folder: Path) -> None:
    if not (folder / "libtomcrypt.so.1").exists():
        return
    beside = folder / "libtommath.so.1"
    ctypes.CDLL(str(beside) if beside.exists() else beside.name, ctypes.RTLD_GLOBAL)
    ctypes.CDLL(str(folder / "libtomcrypt.so.1"), ctypes.RTLD_GLOBAL)
