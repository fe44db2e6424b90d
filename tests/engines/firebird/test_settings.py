"""What a DBA or a client sets on Firebird: character set, dialect, role, time zone, types, transactions, firebird.conf.

The server's own isql sets them; another client reads the results.
"""

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from rowqueue.databases import open_database
from rowqueue.install import apply as install
from servers import Server
from servers.firebird import LocalFirebird, dsn

pytestmark = pytest.mark.product("firebird")

BODY = "Grüße, señor"
NO_WAIT = "READ COMMITTED RECORD_VERSION NO WAIT"
# Sends one for now and one for later, and claims what is due.
SEND = """
SELECT id FROM mq_send('{queue}', {body});
SELECT id FROM mq_send_message('{queue}', 'later', DATEADD(1 HOUR TO mq_utc_now()));
COMMIT;
"""
CLAIM = "SELECT id, body, batch_key, lease_until FROM mq_claim_batch('{queue}', 5, 'consumer', 60);\nCOMMIT;\n"
COMPLETE = "SELECT * FROM mq_complete_batch('{key}');\nCOMMIT;\n"
STATES = """
SELECT s.state, s.body, DATEDIFF(SECOND FROM mq_utc_now() TO s.run_at) AS due,
    DATEDIFF(SECOND FROM mq_utc_now() TO s.lease_until) AS lease
FROM mq_message_state AS s WHERE s.type = %s ORDER BY s.id
"""


def isql(server: Server, url: str, text: str, options: Sequence[str] = (), encoding: str = "utf-8") -> tuple[bool, str]:
    """Whether a script ran to its end, and what it printed."""
    assert isinstance(server, LocalFirebird)
    command, environment = server.isql
    done = subprocess.run(
        [*command, "-quiet", "-bail", *options, dsn(url)],
        env=os.environ | environment,
        input=text.encode(encoding),
        capture_output=True,
        timeout=60,
    )
    told = (done.stdout + done.stderr).decode(encoding)
    return done.returncode == 0 and not done.stderr, told


def begin(text: str, manner: str = NO_WAIT) -> str:
    return f"COMMIT;\nSET TRANSACTION {manner};\n{text}"


def works(
    server: Server, url: str, queue: str, options: Sequence[str] = (), before: str = "", encoding: str = "utf-8"
) -> None:
    """A message goes through the queue under these settings, whole, and its times are those of UTC."""

    def run(text: str) -> str:
        ok, told = isql(server, url, before + begin(text), options, encoding)
        assert ok, told
        return told

    def states() -> list[dict[str, Any]]:
        with server.client(url) as client:
            return client.execute(STATES, [queue]).fetchall()

    # isql itself loses a byte that is no UTF-8, from what it reads.
    body = f"'{BODY}'" if encoding == "utf-8" else f"_WIN1252 X'{BODY.encode(encoding).hex()}'"
    run(SEND.format(queue=queue, body=body))
    assert [(row["state"], row["body"]) for row in states()] == [("N", BODY), ("N", "later")]
    told = run(CLAIM.format(queue=queue))
    now, later = states()
    assert (now["state"], later["state"]) == ("A", "N")
    assert now["due"] <= 0 and 3500 < later["due"] <= 3600 and 30 < now["lease"] <= 60
    assert BODY in told
    key = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", told)
    assert key, told
    run(COMPLETE.format(key=key[0]))
    assert [row["body"] for row in states()] == ["later"]


@pytest.mark.parametrize(
    ("options", "encoding"),
    [
        (["-charset", "NONE"], "utf-8"),
        (["-charset", "UTF8"], "utf-8"),
        (["-charset", "WIN1252"], "cp1252"),
        (["-charset", "UTF8", "-role", "MQ_PRODUCER"], "utf-8"),
        (["-charset", "UTF8", "-sql_dialect", "1"], "utf-8"),
    ],
    ids=["NONE", "UTF8", "WIN1252", "role", "dialect 1"],
)
def test_a_client_of_any_character_set_dialect_and_role_works(
    server: Server, database: Any, queue: str, options: list[str], encoding: str
) -> None:
    works(server, database.url, queue, options, encoding=encoding)


@pytest.mark.parametrize(
    "before",
    [
        "SET TIME ZONE 'America/New_York';\n",
        "SET TIME ZONE '+14:00';\n",
        "SET BIND OF TIMESTAMP WITH TIME ZONE TO LEGACY;\nSET BIND OF DECFLOAT TO DOUBLE PRECISION;\n"
        "SET BIND OF INT128 TO BIGINT;\n",
        "SET BIND OF BIGINT TO VARCHAR;\nSET BIND OF TIMESTAMP TO VARCHAR;\n",
    ],
    ids=["zone", "offset", "legacy", "texts"],
)
def test_a_session_of_any_time_zone_and_binding_works(server: Server, database: Any, queue: str, before: str) -> None:
    assert isinstance(server, LocalFirebird)
    if server.version.startswith("3."):
        pytest.skip("3.0 has neither")
    works(server, database.url, queue, ["-charset", "UTF8"], before)


REFUSED = r"50001|wrong_isolation"
READ_ONLY = r"read-only"
# For each, the error of a claim, on 3.0 and on later versions; None: it works.
MANNERS: dict[str, tuple[str | None, str | None]] = {
    "READ COMMITTED RECORD_VERSION NO WAIT": (None, None),
    "READ COMMITTED NO RECORD_VERSION NO WAIT": (REFUSED, None),
    "READ COMMITTED NO WAIT": (REFUSED, None),
    "READ COMMITTED RECORD_VERSION WAIT": (REFUSED, REFUSED),
    "READ COMMITTED RECORD_VERSION LOCK TIMEOUT 5": (REFUSED, REFUSED),
    "SNAPSHOT NO WAIT": (REFUSED, REFUSED),
    "SNAPSHOT": (REFUSED, REFUSED),
    "SNAPSHOT TABLE STABILITY NO WAIT": (REFUSED, REFUSED),
    "READ ONLY READ COMMITTED RECORD_VERSION NO WAIT": (READ_ONLY, READ_ONLY),
}


def claims(server: Server, url: str, queue: str, manner: str, refused: str | None) -> None:
    """A claim in a kind of transaction works, or is refused and changes nothing."""
    with server.client(url) as client:
        client.execute("SELECT id FROM mq_send(%s, 'x')", [queue])
        ok, told = isql(server, url, begin(CLAIM.format(queue=queue), manner), ["-charset", "UTF8"])
        [row] = client.execute(STATES, [queue]).fetchall()
    assert ok == (refused is None), told
    assert row["state"] == ("N" if refused else "A")
    assert refused is None or re.search(refused, told), told


@pytest.mark.parametrize("manner", MANNERS)
def test_a_claim_works_or_says_which_transaction_it_needs(
    server: Server, database: Any, queue: str, manner: str
) -> None:
    assert isinstance(server, LocalFirebird)
    claims(server, database.url, queue, manner, MANNERS[manner][not server.version.startswith("3.")])


def test_a_claim_with_read_consistency_works(server: Server, database: Any, queue: str) -> None:
    assert isinstance(server, LocalFirebird)
    if server.version.startswith("3."):
        pytest.skip("3.0 has none")
    claims(server, database.url, queue, "READ COMMITTED READ CONSISTENCY NO WAIT", None)


@pytest.fixture
def configured(private_server: Server) -> Callable[[str], str]:
    """Restarts a server with other settings; returns the URL of a database with the queue."""

    def start(settings: str) -> str:
        assert isinstance(private_server, LocalFirebird)
        url = private_server.create_database()
        install.apply(open_database(url))
        private_server.stop()
        with (private_server._root / "firebird.conf").open("a") as file:
            file.write(settings)
        private_server.start()
        return url

    return start


def test_a_server_with_other_settings_works(
    private_server: Server, configured: Callable[[str], str], queue: str
) -> None:
    """Without read consistency, NO RECORD_VERSION has its own meaning on later versions too."""
    if private_server.name == "firebird-3.0":
        pytest.skip("3.0 has neither setting")
    url = configured("ReadConsistency = 0\nDataTypeCompatibility = 3.0\nServerMode = SuperClassic\n")
    works(private_server, url, queue, ["-charset", "UTF8"])
    for n, manner in enumerate(MANNERS):
        claims(private_server, url, f"{queue}.{n}", manner, MANNERS[manner][0])
