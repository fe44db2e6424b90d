"""Errors that a user can act on: the command line prints them as one line, without a traceback."""

from typing import ClassVar


class Error(Exception):
    """The base of errors whose message says all that a user needs. `exit_code`: that of the command."""

    exit_code: ClassVar[int] = 1
