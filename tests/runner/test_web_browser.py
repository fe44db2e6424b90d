"""`runner web` in a real Chromium: every page and button, live updates, accessibility, and hostile bodies."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

import pytest
from rowqueue.databases import Database, Session
from rowqueue.extras.web.pages import PAGES
from support.outcomes import dead_letter
from support.pages import Serve, Site, chromium, database, serve
from support.waiting import until
from test_web import dead_letters

__all__ = ["chromium", "database", "serve"]

pytestmark = pytest.mark.product("postgresql")


@pytest.fixture
def browse(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Makes a page of a browser of its own, which collects its errors in `page.problems`."""
    contexts = []

    def make(**options: Any) -> Any:
        contexts.append(chromium.new_context(**options))
        page = contexts[-1].new_page()
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda line: page.problems.append(line.text) if line.type == "error" else None)
        page.on("dialog", lambda dialog: (page.problems.append(f"dialog {dialog.message}"), dialog.dismiss()))
        return page

    yield make
    for context in contexts:
        context.close()


Browse = Callable[..., Any]


def fill(session: Session, queue: str, sql: Callable[..., Any]) -> dict[str, str]:
    """Something for every page to show; returns the addresses that have it, by page."""
    dead_letters(session, queue, "ConnectionRefusedError: refused by", 7)
    dead_letters(session, queue, "no mailbox", 2)
    for number in range(3):
        session.call(
            "send_message",
            queue,
            f'{{"n": {number}}}',
            None,
            number,
            "group",
            f"key {number}",
            None,
            '{"h": 1}',
            "shop",
        )
    session.call("set_schedule", queue, queue, "0 3 * * *", '{"nightly": 1}')
    session.call("bind_topic", f"{queue}.*", queue)
    session.call("set_queue", queue, '{"on_complete": "archive", "max_active": 7}')
    session.call(
        "report_consumer",
        f"consumer {queue}",
        queue,
        json.dumps(
            {
                "completed": 12,
                "failed": 3,
                "dead": 1,
                "busy_ms": 50,
                "waited_ms": 50,
                "sent": 12,
                "sent_at": str(session.now()),
                "next_seconds": 60,
            }
        ),
    )
    table = f"t_{queue[5:]}"
    sql(f"CREATE TABLE {table} (id bigint PRIMARY KEY, note text)")
    sql(f"INSERT INTO {table} SELECT n, 'x' FROM generate_series(1, 5) AS n")
    sql(f"ALTER TABLE {table} ADD COLUMN done text DEFAULT 'new'")
    sql(f"CREATE INDEX ON {table} (done, id)")
    session.call(
        "adopt_table",
        queue,
        table,
        json.dumps(
            {
                "key_columns": "id",
                "order_column": "id",
                "status_column": "done",
                "ready_value": "new",
                "active_value": "busy",
                "done_value": "done",
                "error_value": "bad",
                "max_attempts": 1,
            }
        ),
    )
    rows = session.call("claim_rows", queue, 3)
    session.call("finish_rows", rows[0]["batch_key"], "\n".join(dead_letter(row["id"], "row is bad") for row in rows))
    [dead] = session.call("peek", queue, "E", 1)
    return {
        **{path: path for path in PAGES},
        "/queue": f"/queue?type={queue}&state=E",
        "/message": f"/message?id={dead['id']}",
        "/search": f"/search?by=group_key&q=group&type={queue}",
        "/table": f"/table?name={queue}&state=E",
    }


# ---- every page ----------------------------------------------------------------------------------


@pytest.mark.level(3)
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.level(4))])
def test_axe_finds_nothing_serious_on_any_page(
    serve: Serve, browse: Browse, session: Session, queue: str, sql: Any, scheme: str
) -> None:
    addresses = fill(session, queue, sql)
    assert addresses.keys() == PAGES.keys()
    site = serve(
        "--allow-changes", "--database", "gone=postgresql://127.0.0.1:1/x", "--database", f"here={url_of(session)}"
    )
    page = browse(color_scheme=scheme)
    page.goto(site.login)
    axe = files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
    found = {}
    for path, address in {**addresses, "error": "/none", "confirm": ""}.items():
        if path == "confirm":
            page.goto(f"{site.url}{addresses['/message']}&db=here")
            page.get_by_role("button", name="Cancel…").click()
            page.wait_for_url("**/change")
        else:
            page.goto(f"{site.url}{address}{'&' if '?' in address else '?'}db=here")
        assert page.title().endswith("rowqueue")
        page.evaluate(axe)
        result = page.evaluate("axe.run({resultTypes: ['violations']})")
        bad = [one for one in result["violations"] if one["impact"] in ("serious", "critical")]
        if bad:
            found[path] = [(one["id"], [node["html"] for node in one["nodes"][:3]]) for one in bad]
    assert found == {}
    assert [problem for problem in page.problems if "404" not in problem] == []


def url_of(session: Session) -> str:
    """The URL of the database of a session of the tests."""
    return str(session.url)  # type: ignore[attr-defined]


@pytest.fixture
def session(session: Session, database: Database) -> Session:
    session.url = database.url  # type: ignore[attr-defined]
    return session


@pytest.mark.level(3)
def test_every_link_of_the_pages_leads_to_a_page(
    serve: Serve, browse: Browse, session: Session, queue: str, sql: Any
) -> None:
    addresses = fill(session, queue, sql)
    site = serve("--allow-changes")
    page = browse()
    page.goto(site.login)
    seen: set[str] = set()
    for address in addresses.values():
        page.goto(site.url + address)
        seen |= {link.get_attribute("href") for link in page.query_selector_all("main a[href], nav a[href]")}
    assert len(seen) > 25
    for link in sorted(seen):
        if queue in link or "?" not in link:
            assert site.ask(link).status == 200, link


@pytest.mark.level(3)
def test_a_narrow_screen_scrolls_tables_and_not_the_page(
    serve: Serve, browse: Browse, session: Session, queue: str, sql: Any
) -> None:
    addresses = fill(session, queue, sql)
    site = serve("--allow-changes")
    page = browse(viewport={"width": 360, "height": 640})
    page.goto(site.login)
    for path, address in addresses.items():
        page.goto(site.url + address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path


@pytest.mark.level(3)
def test_the_pages_can_be_read_without_javascript(
    serve: Serve, browse: Browse, session: Session, queue: str, sql: Any
) -> None:
    addresses = fill(session, queue, sql)
    page = browse(java_script_enabled=False)
    site = serve("--allow-changes")
    page.goto(site.login)
    page.get_by_role("link", name=queue).first.click()
    page.get_by_role("navigation", name="States").get_by_role("link", name="dead").click()
    page.locator("td a").last.click()
    assert page.locator("h1").inner_text().startswith("Message")
    page.goto(site.url + addresses["/message"])
    page.get_by_role("button", name="Redrive…").click()
    page.get_by_role("button", name="Yes, do it").click()
    assert "1 redriven" in page.get_by_role("status").first.inner_text()


# ---- every button --------------------------------------------------------------------------------


def press(page: Any, name: str, sure: bool = True) -> str:
    """Press a button, confirm, and return the note on the next page."""
    page.get_by_role("button", name=name, exact=True).first.click()
    if sure:
        page.get_by_role("button", name="Yes, do it").click()
    note = page.locator(".note")
    note.wait_for()
    return str(note.inner_text())


def test_every_button_does_what_it_says(serve: Serve, browse: Browse, session: Session, queue: str, sql: Any) -> None:
    addresses = fill(session, queue, sql)
    site = serve("--allow-changes")
    page = browse()
    page.goto(site.login)

    def stats() -> dict[str, Any]:
        return session.call("queue_stats", queue)[0]

    assert "is paused" in press(page, f"Pause {queue}", sure=False)
    assert stats()["paused"]
    assert "is resumed" in press(page, f"Resume {queue}", sure=False)
    assert not stats()["paused"]

    page.goto(site.url + addresses["/queue"])
    press(page, "Pause", sure=False)
    press(page, "Resume", sure=False)
    assert not stats()["paused"]
    group = page.get_by_role("row").filter(has_text="ConnectionRefusedError").filter(has_text="7")
    group.get_by_role("button").click()
    assert "ConnectionRefusedError: refused by #" in page.locator("h1").inner_text()
    page.get_by_role("button", name="Yes, do it").click()
    assert "7 redriven" in page.locator(".note").inner_text()
    assert stats()["dead"] == 2

    page.goto(f"{site.url}/message?id={session.call('peek', queue, 'E', 1)[0]['id']}")
    assert "1 redriven" in press(page, "Redrive…")
    assert "1 cancelled" in press(page, "Cancel…")
    assert stats()["dead"] == 1
    page.goto(site.url + addresses["/queue"])
    assert "1 redriven" in press(page, "Redrive all dead letters…")
    dead_letters(session, queue, "broken", 3)
    page.goto(site.url + addresses["/queue"])
    assert "3 deleted" in press(page, "Delete dead letters…")
    assert f"{stats()['ready']} deleted" in press(page, "Delete new messages…")
    assert "0 deleted" in press(page, "Delete archived messages…")
    assert (stats()["ready"], stats()["dead"]) == (0, 0)

    page.goto(f"{site.url}/schedules")
    assert "is sent" in press(page, f"Run {queue} now")
    assert stats()["ready"] == 1
    page.goto(site.url + addresses["/table"])
    page.get_by_role("row").nth(1).get_by_role("button").click()
    page.get_by_role("button", name="Yes, do it").click()
    assert "1 retried" in page.locator(".note").inner_text()
    page.goto(site.url + addresses["/table"])
    assert "2 retried" in press(page, "Retry all dead rows…")
    assert page.problems == []


@pytest.mark.level(3)
def test_a_question_that_is_answered_with_no_changes_nothing(
    serve: Serve, browse: Browse, session: Session, queue: str
) -> None:
    dead_letters(session, queue, "broken", 3)
    site = serve("--allow-changes")
    page = browse()
    page.goto(site.login)
    page.goto(f"{site.url}/queue?type={queue}&state=E")
    page.get_by_role("button", name="Delete dead letters…").click()
    assert page.locator("h1").inner_text() == f"Delete all dead messages of {queue}? This cannot be undone."
    page.get_by_role("link", name="No, go back").click()
    page.wait_for_url("**/queue?*state=E*")
    assert session.call("queue_stats", queue)[0]["dead"] == 3


@pytest.mark.level(3)
def test_a_feed_is_rewound_by_its_button(serve: Serve, browse: Browse, session: Session, queue: str, sql: Any) -> None:
    table = f"f_{queue[5:]}"
    sql(f"CREATE TABLE {table} (id bigint PRIMARY KEY, sync_sequence bigint)")
    sql(f"CREATE INDEX ON {table} (sync_sequence)")
    session.call("create_feed", queue, table, "id", "sync_sequence")
    sql(f"INSERT INTO {table} (id) SELECT generate_series(1, 5)")
    session.call("publish_feed", queue, 10)
    session.call("advance_feed", queue, "indexer", 5)
    site = serve("--allow-changes")
    page = browse()
    page.goto(site.login)
    page.goto(f"{site.url}/feeds")
    row = page.get_by_role("row").filter(has_text=queue)
    row.get_by_role("textbox").fill("2")
    row.get_by_role("button").click()
    page.get_by_role("button", name="Yes, do it").click()
    assert "The position is 2 now" in page.locator(".note").inner_text()
    assert [line["feed_position"] for line in session.call("list_feeds", queue)] == [2]


# ---- live ----------------------------------------------------------------------------------------


@pytest.mark.level(3)
def test_a_page_follows_the_queue_and_keeps_the_focus(
    serve: Serve, browse: Browse, session: Session, queue: str
) -> None:
    session.call("send", queue, "one")
    site = serve("--allow-changes")
    page = browse()
    page.goto(site.login)
    row = page.get_by_role("row").filter(has_text=queue)
    assert "1" in row.locator("td").first.inner_text()
    row.get_by_role("button").focus()
    session.call("send_batch", queue, "\n".join("x" * 41))
    until(lambda: row.locator("td").first.inner_text() == "42", seconds=15)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == f"Pause {queue}"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    assert page.problems == []


@pytest.mark.level(3)
def test_the_server_ends_with_pages_open(serve: Serve, browse: Browse) -> None:
    site = serve()
    page = browse()
    page.goto(site.login)
    page.locator("#fresh", has_text="Updated").wait_for()
    assert site.running.stop() == 0


# ---- hostile bodies ------------------------------------------------------------------------------

_EVIL = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
_HOSTILE = [
    _EVIL,
    f"</textarea></pre></bdi></code>{_EVIL}",
    "'\"><svg onload=alert(1)>{{ 7 * 7 }}{% raw %}",
    json.dumps({_EVIL: [_EVIL, "\u202egnp.exe", "\x1b[31m"]}),
    "\u202eright to left\u2066\x01\x1b]0;owned\x07\x85\u2028",
    "]]>--><!--<![CDATA[",
]


@pytest.mark.level(3)
def test_hostile_bodies_are_text(serve: Serve, browse: Browse, session: Session, queue: str) -> None:
    hostile = f"{queue}<b id=owned>"
    for number, body in enumerate(_HOSTILE):
        values = (None, None, f"{body}"[:200], f"{number}{body}"[:200], None, json.dumps({"h": body}), body[:200])
        session.call("send_message", hostile, body, *values)
    session.call("set_schedule", f"{_EVIL}{queue}"[-200:], hostile, "0 3 * * *", _EVIL)
    session.call(
        "report_consumer",
        f"{queue}{_EVIL}"[:200],
        hostile,
        '{"completed": 1, "failed": 0, "dead": 0, "busy_ms": 5, "waited_ms": 5, "sent": 1, "next_seconds": 10}',
    )
    rows = session.call("claim_batch", hostile, 2)
    lines = "\n".join(dead_letter(row["id"], _EVIL) for row in rows)
    session.call("finish_batch", rows[0]["batch_key"], lines)
    site = serve("--allow-changes")
    page = browse()
    page.goto(site.login)
    from urllib.parse import quote

    addresses = ["/", "/schedules", "/consumers"]
    addresses += [f"/queue?type={quote(hostile)}&state={state}" for state in "NE"]
    found = [row for state in "NE" for row in session.call("peek", hostile, state, 10)]
    assert len(found) == len(_HOSTILE)
    addresses += [f"/message?id={row['id']}" for row in found]
    addresses += [f"/search?q={quote(_EVIL)}&by=group_key", f"/search?q={quote(_EVIL)}"]
    for address in addresses:
        page.goto(site.url + address)
        page.locator("#fresh:not(:empty), .away").first.wait_for()
        assert page.title().endswith("rowqueue"), address
        strange = "document.querySelectorAll('#owned, main script, main img, main svg:not(.chart), [onerror]').length"
        assert page.evaluate(strange) == 0, address
        assert "\u202e" not in page.locator("body").inner_text(), address
        assert "49" not in page.locator("pre").all_inner_texts(), address
    assert [problem for problem in page.problems if "status of 400" not in problem] == []
    evil = next(row for row in found if row["body"] == _EVIL)
    page.goto(f"{site.url}/message?id={evil['id']}")
    assert page.locator("pre").last.inner_text().strip() != ""
    assert _EVIL in page.locator("pre").all_inner_texts()


@pytest.mark.level(3)
def test_a_body_of_16_mib_is_cut_and_can_be_downloaded(
    serve: Serve, browse: Browse, session: Session, queue: str
) -> None:
    body = '{"text": "' + "<b>" * ((16_777_216 - 12) // 3) + '"}'
    session.call("send", queue, body)
    [row] = session.call("peek", queue, "N", 1, 10)
    site = serve()
    page = browse()
    page.goto(site.login)
    page.goto(f"{site.url}/message?id={row['id']}")
    assert len(page.content()) < 2_000_000
    assert "The first 100,000 characters." in page.locator("main").inner_text()
    answer = site.ask(f"/body?id={row['id']}")
    assert answer.text == body
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-type"].startswith("text/plain")
    assert "sandbox" in answer.headers["content-security-policy"]


# ---- an attacker's page --------------------------------------------------------------------------


@pytest.fixture
def attacker() -> Iterator[Callable[[str], str]]:
    """Serves a page of another origin: attacker(html) -> its port and path."""
    pages: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(pages.get(self.path, b""))

        def log_message(self, *_: Any) -> None:
            """Do not log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def add(html: str) -> str:
        path = f"/{len(pages)}"
        pages[path] = html.encode()
        return f"{server.server_port}{path}"

    yield add
    server.shutdown()
    server.server_close()


# The same machine on another port is the same site to a browser, which then sends cookies, even the strict ones.
@pytest.mark.level(3)
@pytest.mark.parametrize("host", ["127.0.0.1", "evil.example"])
def test_an_attackers_page_gets_nothing(
    serve: Serve, browse: Browse, session: Session, queue: str, attacker: Callable[[str], str], host: str
) -> None:
    session.call("send", queue, "x")
    site = serve("--allow-changes")
    page = browse()
    page.goto(site.login)
    page.get_by_label("Part of a queue's name").fill(queue)
    page.keyboard.press("Enter")
    page.get_by_role("link", name=queue).first.wait_for()
    html = f"""<iframe id=f src="{site.url}/?queue={queue}"></iframe>
    <form id=form method=post target=g action="{site.url}/change">
    <input name=do value=pause><input name=type value="{queue}"></form>
    <iframe name=g></iframe>
    <script>
    const tries = {{}};
    const known = promise => promise.then(r => r.text ? r.text() : r, e => "error");
    (async () => {{
      tries.cors = await known(fetch("{site.url}/", {{credentials: "include"}}));
      tries.nocors = await known(fetch("{site.url}/", {{credentials: "include", mode: "no-cors"}}));
      tries.post = await known(fetch("{site.url}/change", {{method: "POST", credentials: "include", mode: "no-cors",
        body: new URLSearchParams({{do: "pause", type: "{queue}"}})}}));
      tries.events = await new Promise(done => {{
        const source = new EventSource("{site.url}/events?page=/", {{withCredentials: true}});
        source.onmessage = e => done(e.data); source.onerror = () => {{ source.close(); done("error"); }} }});
      try {{ tries.frame = document.getElementById("f").contentDocument.body.innerHTML; }}
      catch (e) {{ tries.frame = "error"; }}
      document.getElementById("form").submit();
      setTimeout(() => {{ window.tries = JSON.stringify(tries); }}, 1000);
    }})();
    </script>"""
    page.goto(f"http://{host}:{attacker(html)}")
    page.wait_for_function("window.tries")
    tries = json.loads(page.evaluate("window.tries"))
    assert tries["cors"] == tries["events"] == "error"
    assert not any(queue in str(value) for value in tries.values())
    for frame in page.frames[1:]:
        assert queue not in frame.content()
    assert not session.call("queue_stats", queue)[0]["paused"]


def test_a_name_that_an_attacker_lets_lead_here_gets_nothing(serve: Serve, browse: Browse) -> None:
    site: Site = serve("--no-token")
    page = browse()
    answer = page.goto(f"http://evil.example:{site.port}/")
    assert answer.status == 421
    assert page.locator("body").inner_text().strip() == "wrong host"


@pytest.mark.level(3)
def test_a_link_with_the_token_works_from_other_pages_too(
    serve: Serve, browse: Browse, attacker: Callable[[str], str]
) -> None:
    site = serve()
    page = browse()
    page.goto(f"http://evil.example:{attacker(f'<a href={site.login}>the queues</a>')}")
    page.get_by_role("link").click()
    page.wait_for_url(f"{site.url}/")
    assert page.locator("h1").inner_text() == "Overview"
