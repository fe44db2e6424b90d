"""Generated parts of a page. Two comments enclose each, and the first one says what is in it:

    <!-- generated: procedures send, send_with -->
    …
    <!-- end of generated -->

build.py writes these parts. The tests also read what is left of a page without them.
"""

import re
from collections.abc import Callable

_PART = re.compile(r"^(<!-- generated: ([^\n]+) -->\n).*?^(<!-- end of generated -->\n)", re.M | re.S)


def names(page: str) -> list[str]:
    """What each generated part of a page holds."""
    return [part[2] for part in _PART.finditer(page)]


def fill(page: str, write: Callable[[str], str]) -> str:
    """The page with its generated parts written again: write("procedures send") returns the text of one."""
    return _PART.sub(lambda part: f"{part[1]}\n{write(part[2])}\n\n{part[3]}", page)


def by_hand(page: str) -> str:
    """The page without its generated parts."""
    return _PART.sub("", page)
