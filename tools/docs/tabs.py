"""Tabs in plain Markdown, per engine or with names of their own, readable without the site.

A group of tabs is between two comments, and each tab begins with a bold name on its own line:

    <!-- tabs -->
    **PostgreSQL**

    text and code

    **Firebird**

    text and code
    <!-- end of tabs -->

A name is one engine, or several: `MySQL and MariaDB`, `PostgreSQL, SQL Server`. Other names are listed in the first
comment: `<!-- tabs: Django, FastAPI -->`. The site shows tabs (hooks.py); the tests read what a page says about one
engine.
"""

import re
from collections.abc import Iterable

# The name of an engine on a page, by its folder in procedures/.
ENGINES = {
    "postgresql": "PostgreSQL",
    "mysql": "MySQL and MariaDB",
    "sqlserver": "SQL Server",
    "firebird": "Firebird",
}
BEGIN, END = "<!-- tabs -->", "<!-- end of tabs -->"
_GROUP = re.compile(rf"^<!-- tabs(?:: ([^\n]+))? -->\n(.*?)^{re.escape(END)}\n", re.M | re.S)


def _tabs(names: Iterable[str], group: str) -> list[tuple[str, str]]:
    """The tabs of a group: (name, text). Raises ValueError for text before the first one."""
    name = rf"(?:{'|'.join(map(re.escape, names))})"
    before, *rest = re.split(rf"^\*\*({name}(?:, {name})*)\*\*\n", group, flags=re.M)
    if before.strip() or not rest:
        raise ValueError(f"a group of tabs must begin with the name of a tab: {group[:80]!r}")
    return list(zip(rest[::2], rest[1::2], strict=True))


def _check(page: str) -> str:
    left = _GROUP.sub("", page)
    if BEGIN.removesuffix(" -->") in left or END in left:
        raise ValueError("a group of tabs has no beginning or no end")
    return page


def for_engine(page: str, engine: str) -> str:
    """The page for users of one engine: the shared text and the tabs of that engine."""
    name = ENGINES[engine]

    def choose(group: re.Match[str]) -> str:
        if group[1]:
            return group[0]
        return "".join(text for names, text in _tabs(ENGINES.values(), group[2]) if name in names.split(", "))

    return _GROUP.sub(choose, _check(page))


def for_site(page: str) -> str:
    """The page with tabs in the syntax of pymdownx, with indented text."""

    def tabbed(group: re.Match[str]) -> str:
        parts = []
        known = group[1].split(", ") if group[1] else ENGINES.values()
        for names, text in _tabs(known, group[2]):
            for name in names.split(", "):
                body = "\n".join(f"    {line}" if line else "" for line in text.strip("\n").split("\n"))
                parts.append(f'=== "{name}"\n\n{body}\n')
        return "\n" + "\n".join(parts) + "\n"

    return _GROUP.sub(tabbed, _check(page))
