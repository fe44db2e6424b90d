"""Rules for locks, indexes and results on SQL Server that its documentation gives and no test here can show."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = {
    f"{path.relative_to(ROOT).parts[0]}/{path.stem}": re.sub(r"(?m)\s*--.*$", "", path.read_text("utf-8"))
    for folder in ("migrations", "procedures")
    for path in sorted((ROOT / folder / "sqlserver").rglob("*.sql"))
}


def offending(pattern: str, allowed: str = r"(?!)") -> list[str]:
    """The places of all files that match the pattern, without those that `allowed` matches as well."""
    return [
        f"{name}: {found[0]}"
        for name, code in CODE.items()
        for found in re.finditer(pattern, code)
        if not re.fullmatch(allowed, found[0])
    ]


def test_locked_reads_lock_rows_and_no_pages() -> None:
    """READPAST skips locked rows but waits for locked pages; with row versions it needs READCOMMITTEDLOCK."""
    hints = "|".join(
        (
            "(?:UPDLOCK, )?ROWLOCK(?:, READCOMMITTEDLOCK)?",
            "(?:UPDLOCK, )?READPAST, ROWLOCK, READCOMMITTEDLOCK",
            "UPDLOCK, HOLDLOCK, ROWLOCK",
            "REPEATABLEREAD, ROWLOCK",
        )
    )
    locks = r"WITH \([^()]*(?:LOCK|READPAST|REPEATABLE)[^()]*(?:\([^()]*\))?[^()]*\)"
    more = r"(?:, NOWAIT)?(?:, FORCESEEK, INDEX \(\w+\)|\{hint\})?"
    assert offending(locks, rf"WITH \((?:{hints}){more}\)") == []


def test_no_aggregate_reads_nulls() -> None:
    """Warning 8153 would come before the rows, as a result of its own in ODBC."""
    assert offending(r"\b(?:MIN|MAX|SUM|COUNT|COUNT_BIG|AVG)\(CASE\b.*?\bEND\)", r".*\bELSE\b.*") == []
