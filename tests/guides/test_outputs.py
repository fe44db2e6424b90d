"""The results that the reference shows are those of every database."""

import json
from typing import Any

import outputs
from rowqueue.databases import Database
from servers import Server


def folded(results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Without the case of letters and the blanks of JSON, which a database's catalog and its JSON functions choose."""
    return {
        name: [
            {
                column: value and value.casefold().replace(" ", "").replace("public.", "")
                for column, value in row.items()
            }
            for row in result["rows"]
        ]
        for name, result in results.items()
    }


def test_the_calls_of_the_reference_return_what_it_shows(installed_database: Database, server: Server) -> None:
    session = installed_database.connect("docs")
    try:
        results = outputs.run(session, lambda statement: server.query(installed_database.url, statement))
    finally:
        session.close()
    assert folded(results) == folded(json.loads(outputs.FILE.read_text("utf-8")))
