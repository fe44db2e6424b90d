"""Tabs per engine in plain Markdown, readable without the site.

A group of tabs is between two comments, and each tab begins with a bold name on its own line:

    <!-- tabs -->
    **PostgreSQL**

    text and code

    **Firebird**

    text and code
    <!-- end of tabs -->

A name is one engine, or several: `MySQL and MariaDB`, `PostgreSQL, SQL Server`. The site shows tabs (hooks.py);
the tests read what a page says about one engine.
"""

import re

# The name of an engine on a page, by its folder in procedures/.
ENGINES = {
    "postgresql": "PostgreSQL",
    "mysql": "MySQL and MariaDB",
    "sqlserver": "SQL Server",
    "firebird": "Firebird",
}
BEGIN, END = "<!-- tabs -->", "<!-- end of tabs -->"
_GROUP = re.compile(rf"^{re.escape(BEGIN)}\n(.*?)^{re.escape(END)}\n", re.M | re.S)
_NAME = rf"(?:{'|'.join(ENGINES.values())})"
_TAB = re.compile(rf"^\*\*({_NAME}(?:, {_NAME})*)\*\*\n", re.M)


def _tabs(group: str) -> list[tuple[str, str]]:
    """The tabs of a group: (name, text). Raises ValueError for text before the first one."""
    before, *rest = _TAB.split(group)
    if before.strip() or not rest:
        raise ValueError(f"a group of tabs must begin with the name of an engine: {group[:80]!r}")
    return list(zip(rest[::2], rest[1::2], strict=True))


def _check(page: str) -> str:
    left = _GROUP.sub("", page)
    if BEGIN in left or END in left:
        raise ValueError("a group of tabs has no beginning or no end")
    return page


def for_engine(page: str, engine: str) -> str:
    """The page for users of one engine: the shared text and the tabs of that engine."""
    name = ENGINES[engine]

    def choose(group: re.Match[str]) -> str:
        return "".join(text for names, text in _tabs(group[1]) if name in names.split(", "))

    return _GROUP.sub(choose, _check(page))


def for_site(page: str) -> str:
    """The page with tabs in the syntax of pymdownx, with indented text."""

    def tabbed(group: re.Match[str]) -> str:
        parts = []
        for names, text in _tabs(group[1]):
            for name in names.split(", "):
                body = "\n".join(f"    {line}" if line else "" for line in text.strip("\n").split("\n"))
                parts.append(f'=== "{name}"\n\n{body}\n')
        return "\n" + "\n".join(parts) + "\n"

    return _GROUP.sub(tabbed, _check(page))
