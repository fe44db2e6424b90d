"""What can be expected to go wrong: the runner tells it in one line."""

from typing import ClassVar


class Expected(Exception):
    """The base of errors whose message says all that a user needs. `exit_code`: what the runner ends with."""

    exit_code: ClassVar[int] = 1
