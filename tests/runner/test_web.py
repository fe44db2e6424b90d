"""`runner web` without a browser: access rules, headers, contents of pages, and shutdown."""

import asyncio
import http.client
import json
import re
import signal
import socket
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest
import servers
import uvicorn
from rowqueue.databases import Database, Session, open_database
from rowqueue.extras.web import connections, shown
from rowqueue.extras.web.pages import PAGES
from rowqueue.install import apply as install
from support.outcomes import dead_letter
from support.pages import TOKEN, Serve, Site, database, serve
from support.processes import Running
from support.waiting import until

__all__ = ["database", "serve"]

pytestmark = pytest.mark.level(1)

SECRET = "a secret of this body"


def dead_letters(session: Session, queue: str, error: str, count: int) -> None:
    session.call("send_batch", queue, "\n".join(f'{{"secret": "{SECRET}", "number": {n}}}' for n in range(count)))
    rows = session.call("claim_batch", queue, count)
    lines = "\n".join(dead_letter(row["id"], f"{error} {row['id']}") for row in rows)
    session.call("finish_batch", rows[0]["batch_key"], lines)


# ---- the token -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*PAGES, "/events", "/body?id=1", "/metrics", "/static/style.css", "/change", "/none"])
def test_without_the_token_nothing_is_shown(serve_once: Site, path: str) -> None:
    answer = serve_once.ask(path, token=None)
    assert (answer.status, answer.text) == (401, "unauthorized\n")


@pytest.mark.parametrize("token", ["", "x", f"{TOKEN}x", TOKEN[:-1], "ä" * 20])
def test_a_wrong_token_is_refused(serve_once: Site, token: str) -> None:
    from urllib.parse import quote

    assert serve_once.ask(f"/?token={quote(token)}", token=None).status == 403
    assert serve_once.ask("/", token=None, Cookie=f"rowqueue-{serve_once.port}={quote(token)}").status == 401
    assert serve_once.ask("/", token=None, Authorization=f"Bearer {quote(token)}").status == 401


def test_the_token_becomes_a_cookie_and_leaves_the_address(serve_once: Site) -> None:
    answer = serve_once.ask(f"/queue?type=a%26b&token={TOKEN}&size=20", token=None)
    base = serve_once.base
    assert (answer.status, answer.headers["location"]) == (303, f"{base}/queue?type=a%26b&size=20")
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    # Below a path that other servers on this host do not know: for browsers, all ports of a host are one.
    assert {"HttpOnly", "SameSite=strict", f"Path={base}"} <= set(attributes) and len(base) == 17
    assert TOKEN not in cookie
    assert serve_once.ask(f"{base}/", token=None, Cookie=cookie).status == 200


def test_a_token_in_an_address_of_two_slashes_leads_to_no_other_host(serve_once: Site) -> None:
    assert serve_once.ask(f"//evil.example/?token={TOKEN}", token=None).headers["location"] == (
        f"{serve_once.base}/evil.example/"
    )


def test_without_a_token_only_on_this_machine(serve: Serve, runner: Callable[..., Any]) -> None:
    assert serve("--no-token").ask("/", token=None).status == 200
    refused = runner("web", "--no-token", "--host", "0.0.0.0")
    assert refused.returncode == 2
    assert "--no-token" in refused.stderr


def test_a_short_token_of_the_environment_is_refused(runner: Callable[..., Any]) -> None:
    refused = runner("web", env={"RUNNER_WEB_TOKEN": "short"})
    assert refused.returncode == 2
    assert "RUNNER_WEB_TOKEN" in refused.stderr
    assert "16" in refused.stderr


# ---- strangers -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def serve_once(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One server, with buttons, for tests that only read."""
    import subprocess

    from support.processes import COMMAND, FOLDER, environment

    path = tmp_path_factory.mktemp("web") / "stderr"
    with path.open("w") as stderr:
        command = [*COMMAND, "web", "--port", "0", "--allow-changes"]
        variables = environment(database.url, RUNNER_WEB_TOKEN=TOKEN)
        process = subprocess.Popen(command, stdout=stderr, stderr=stderr, text=True, env=variables, cwd=FOLDER)
    running = Running(process, path)
    try:
        until(lambda: "http://" in running.stderr)
        yield Site(running, int(running.stderr.partition("http://127.0.0.1:")[2].partition("/")[0]))
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8425", "127.0.0.1.evil.example", "", "[::1", "0.0.0.0"])
def test_a_host_that_is_not_ours_gets_nothing(serve_once: Site, host: str) -> None:
    answer = serve_once.ask("/live", Host=host)
    assert (answer.status, answer.text) == (421, "wrong host\n")


def test_a_host_that_is_allowed_is_served(serve: Serve) -> None:
    site = serve("--allowed-host", "queues.example.com")
    assert site.ask("/", Host="queues.example.com").status == 200
    assert site.ask("/", Host="QUEUES.example.com:443").status == 200
    assert site.ask("/", Host="other.example.com").status == 421
    assert site.ask("/", X_Forwarded_Host="queues.example.com", Host="other.example.com").status == 421


def test_headers_of_a_proxy_are_trusted_only_with_the_option(serve: Serve) -> None:
    site = serve("--allowed-host", "queues.example.com", "--behind-proxy")
    headers = {"X_Forwarded_Host": "queues.example.com", "X_Forwarded_Proto": "https"}
    answer = site.ask(f"/?token={TOKEN}", token=None, **headers)
    assert "Secure" in answer.headers["set-cookie"].split("; ")
    assert site.ask("/", X_Forwarded_Host="evil.example").status == 421


def test_forms_of_strangers_change_nothing(serve_once: Site, session: Session, queue: str) -> None:
    session.call("send", queue, "x")
    form = {"do": "pause", "type": queue}
    own = f"http://127.0.0.1:{serve_once.port}"
    refused = [
        serve_once.post(form, Origin="http://evil.example"),
        serve_once.post(form, Origin="null"),
        serve_once.post(form, Origin=f"http://127.0.0.1:{serve_once.port + 1}", Sec_Fetch_Site="same-site"),
        serve_once.post(form, Sec_Fetch_Site="cross-site"),
        serve_once.post(form | {"csrf": ""}),
        serve_once.post(form | {"csrf": "0" * 64}),
        serve_once.ask("/change", "POST", form, Origin=own),
        serve_once.ask("/change", "POST", form),
    ]
    assert {answer.status for answer in refused} == {403}
    assert not session.call("queue_stats", queue)[0]["paused"]
    assert serve_once.post(form).status == 303
    assert session.call("queue_stats", queue)[0]["paused"]


def test_other_sites_may_link_here_but_neither_fetch_nor_frame(serve_once: Site) -> None:
    for site in ("cross-site", "same-site"):
        assert serve_once.ask("/", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors", Sec_Fetch_Dest="image").status == 403
        assert (
            serve_once.ask("/", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="iframe").status == 403
        )
        answer = serve_once.ask("/", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document")
        assert answer.status == 200


@pytest.mark.parametrize("path", ["/", "/none", "/static/live.js", "/live", "/queue", "/events?page=/none", "/metrics"])
@pytest.mark.parametrize("token", [TOKEN, None])
def test_every_answer_has_the_headers_that_keep_strangers_out(serve_once: Site, path: str, token: str | None) -> None:
    headers = serve_once.ask(path, token=token).headers
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


def test_without_allow_changes_there_is_no_button_and_no_route(serve: Serve, session: Session, queue: str) -> None:
    dead_letters(session, queue, "broken", 2)
    site = serve()
    for path in ("/", f"/queue?type={queue}&state=E", "/schedules"):
        assert 'method="post"' not in site.ask(path).text
    own = f"http://127.0.0.1:{site.port}"
    assert site.ask("/change", "POST", {"do": "pause", "type": queue}, Origin=own).status == 404


def test_big_and_strange_forms_are_refused(serve_once: Site) -> None:
    assert serve_once.post({"do": "pause", "type": "x" * 70_000}).status == 413
    assert serve_once.post({"do": "pause", "type": "x"}, Content_Type="application/json").status == 415
    assert serve_once.post({"do": "drop"}).status == 400
    assert serve_once.post({"do": "pause", "type": "x" * 201}).status == 400
    for back in ("//evil.example/", "http://evil.example/", "/\\evil.example", "\r\nSet-Cookie: a=b"):
        answer = serve_once.post({"do": "pause", "type": "back", "back": back})
        assert answer.headers["location"].startswith(f"{serve_once.base}/?done="), back


def test_a_question_says_how_many_messages_there_are(serve_once: Site, session: Session, queue: str) -> None:
    dead_letters(session, queue, "broken", 3)
    session.call("send_batch", queue, "x\ny")
    for form, said in (
        ({"do": "redrive_all", "type": queue}, "There are 3 now."),
        ({"do": "redrive_all", "type": queue, "error": "broken #"}, "There are 3 now."),
        ({"do": "purge", "type": queue, "state": "N"}, "There are 2 now."),
        ({"do": "purge", "type": queue, "state": "E"}, "There are 3 now."),
        ({"do": "purge", "type": queue, "state": "C"}, "cannot be undone"),
    ):
        answer = serve_once.post(form)
        assert answer.status == 200 and said in answer.text, form
    assert session.call("queue_stats", queue)[0]["dead"] == 3


HANDLING = "\n".join(f'{{"id": {7102 + n}, "since": "2026-01-01T08:30:00Z"}}' for n in range(7)) + "\nno JSON"


# ---- what is shown -------------------------------------------------------------------------------


@pytest.mark.level(2)
def test_every_page_shows_what_is_in_the_database(serve_once: Site, session: Session, queue: str) -> None:
    dead_letters(session, queue, "refused by", 3)
    session.call("send_message", queue, "{}", None, None, None, "order-7")
    session.call("set_schedule", queue, queue, "0 3 * * *", "{}")
    session.call("bind_topic", queue, queue)
    session.call("set_queue", queue, '{"max_active": 7}')
    session.call(
        "report_consumer",
        f"consumer {queue}",
        queue,
        json.dumps({"completed": 1, "busy_ms": 5, "waited_ms": 5, "sent": 1, "next_seconds": 10, "handling": HANDLING}),
    )
    [dead] = session.call("peek", queue, "E", 1)
    said = {
        f"/?queue={queue}": f"type={queue}",
        f"/queue?type={queue}&state=E": "3 \N{MULTIPLICATION SIGN}",
        f"/message?id={dead['id']}": f"refused by {dead['id']}",
        f"/search?q={dead['id']}": SECRET,
        f"/search?q=order-7&by=dedup_key&type={queue}": "order-7",
        "/search?q=order-7&by=dedup_key": queue,
        "/consumers": f"consumer {queue}",
        "/schedules": queue,
        "/bindings": queue,
        "/feeds": "Feeds",
        "/subscriptions": "Subscriptions",
        "/tables": "Polling tables",
        "/limits": queue,
        "/health": "oldest",
        f"/body?id={dead['id']}": SECRET,
        "/metrics": "rowqueue_up",  # figures are up to five seconds old
        "/ready": "ready",
        "/live": "live",
    }
    # The counts, and so the names of queues to search, are cached for a moment.
    until(lambda: queue in serve_once.ask("/search?q=order-7&by=dedup_key").text, seconds=20)
    for path, text in said.items():
        answer = serve_once.ask(path)
        assert answer.status == 200, (path, answer.text)
        assert text in answer.text, path
        assert "Not shown" not in answer.text, path
    for path in ("/consumers", f"/queue?type={queue}"):
        text = serve_once.ask(path).text
        assert re.search(r"id=7102[^>]*>7102</a> since <time[^>]*>[\d,]+ d ago</time>", text), path
        assert "7106</a>" in text and "7107" not in text and "and 2 more" in text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/queue", 400, "type must have 1 to 200 characters"),
        ("/queue?type=x&state=Q", 400, "state must be one of N, A, E, C"),
        ("/queue?type=x&size=7", 400, "size must be one of 20, 50, 200, 500"),
        ("/queue?type=x&db=none", 404, "no such database"),
        ("/message?id=-1", 400, "id must be a whole number from 1 to"),
        ("/message?id=99999999999999999999999", 400, "id must be a whole number from 1 to"),
        ("/message?id=9000000000000000000", 404, "Message 9000000000000000000 does not exist"),
        ("/search?q=abc", 400, "the id must be a whole number"),
        ("/table?name=none", 400, "not_found"),
        ("/none", 404, "There is no such page"),
    ],
)
def test_an_address_that_cannot_be_is_refused_by_name(serve_once: Site, path: str, status: int, said: str) -> None:
    answer = serve_once.ask(path)
    assert answer.status == status
    assert said in answer.text


def test_hidden_bodies_are_on_no_page(serve: Serve, session: Session, queue: str) -> None:
    dead_letters(session, queue, "broken", 1)
    session.call("send_message", queue, SECRET, None, None, None, "key-1", None, json.dumps({"secret": SECRET}))
    session.call("set_schedule", queue, queue, "0 3 * * *", SECRET)
    [dead] = session.call("peek", queue, "E", 1)
    [new] = session.call("peek", queue, "N", 1)
    session.call("send", f"{queue}.steps", "{}")
    [held] = session.call("claim_batch", f"{queue}.steps")
    session.call("save_step", held["id"], held["batch_key"], "charge <b>", SECRET)
    paths = ["/", "/schedules", f"/queue?type={queue}&state=E", f"/queue?type={queue}", f"/search?q={new['id']}"]
    paths += [f"/message?id={held['id']}"]
    paths += [f"/{page}?id={row['id']}" for page in ("message", "body") for row in (dead, new)]
    open_site = serve()
    assert sum(SECRET in open_site.ask(path).text for path in paths) == 9
    assert "charge &lt;b&gt;" in open_site.ask(f"/message?id={held['id']}").text
    dead_letters(session, f"{queue}.errors", f"KeyError: {SECRET}", 1)
    session.call("set_schedule", f"{queue}.long", queue, "0 3 * * *", SECRET * 10_000)
    [row] = [row for row in session.call("list_schedules", None, 20) if row["name"] == f"{queue}.long"]
    assert row["body"] == SECRET[:20]
    paths += ["/incidents", "/health", f"/queue?type={queue}.errors&state=E"]
    hidden = serve("--hide-bodies")
    for path in paths:
        assert SECRET not in hidden.ask(path).text, path
    assert hidden.ask(f"/body?id={new['id']}").status == 404


def test_parts_that_the_role_may_not_see_are_left_out_with_a_note(
    serve: Serve, server: servers.Server, database: Database, session: Session, queue: str
) -> None:
    dead_letters(session, queue, "broken", 1)
    with server.login(database.url, f"login_{queue[5:13]}", "mq_consumer") as url:
        site = serve("--allow-changes", url=url)
        overview = site.ask("/")
        assert overview.status == 200
        assert queue in overview.text
        assert "may not see it: health, schedules, errors." in overview.text
        assert "may not see it: " in site.ask(f"/queue?type={queue}").text
        assert site.post({"do": "pause", "type": queue}).status == 403


def test_passwords_are_on_no_page_and_in_no_log(serve: Serve) -> None:
    url = "postgresql://user:hush-hush@127.0.0.1:1/shop"
    site = serve("--database", f"away={url}", "--database", url)
    for path in ("/", "/queue?db=away&type=x", "/health", "/metrics"):
        assert "hush" not in site.ask(path).text, path
    assert "Away." in site.ask("/").text
    assert site.ask("/queue?db=away&type=x").status == 503
    assert site.ask("/ready").status == 503
    assert site.ask("/live").status == 200
    assert "hush" not in site.running.stderr


@pytest.mark.parametrize("path", ["/?path=x", "/?self=x&page=1", "/queue?type=x&path=y", "/?query=1&done=x&link=2"])
def test_a_field_of_any_name_may_be_in_an_address(serve_once: Site, path: str) -> None:
    assert serve_once.ask(path).status == 200


def test_a_part_that_fails_is_shown_as_failed_and_the_rest_is_shown(
    serve: Serve, server: servers.Server, installed_database: Database
) -> None:
    with closing(installed_database.connect("test")) as session:
        dead_letters(session, "mails", "ValueError:", 2)
    for name in ("throughput", "list_consumers", "queue_health"):
        server.drop_procedure(installed_database.url, name)
    site = serve(url=installed_database.url)
    for path, failed, text in [
        ("/", ("Throughput", "Consumers", "Health"), 'type=mails"'),
        ("/incidents", ("Consumers", "Health"), "2 dead letters"),
        ("/queue?type=mails&state=E", ("Throughput", "Consumers"), "ValueError:"),
    ]:
        answer = site.ask(path)
        assert answer.status == 200 and text in answer.text, path
        for name in failed:
            assert f"{name} cannot be read.</strong>" in answer.text, (path, name)
    assert "not installed" in site.ask("/consumers").text
    metrics = site.ask("/metrics").text
    assert 'rowqueue_dead_messages{database="' in metrics
    for part, is_up in {"queue_stats": 1, "throughput": 0, "list_consumers": 0, "queue_health": 0}.items():
        assert re.search(rf'rowqueue_part_up{{database="[^"]*",part="{part}"}} {is_up}.0', metrics), part


@pytest.mark.level(2)
def test_an_overview_of_many_queues_is_short_and_finds_each(serve: Serve, installed_database: Database) -> None:
    with closing(installed_database.connect("test")) as session:
        for number in range(330):
            session.call("send", f"queue-{number:03}", "x")
        dead_letters(session, "queue-329", "broken", 1)
    site = serve(url=installed_database.url)
    page = site.ask("/").text
    assert page.count('class="name"') < 120 and len(page) < 350_000
    assert "100 of 330 queues are shown" in page and ">queue-329<" in page
    found = site.ask("/?queue=E-31").text
    assert [name in found for name in (">queue-309<", ">queue-310<", ">queue-319<")] == [False, True, True]


# ---- connections ---------------------------------------------------------------------------------


def test_connections_that_send_nothing_are_closed_and_keep_nobody_out(serve: Serve, queue: str) -> None:
    site = serve()
    opened = []
    for number in range(520):
        opened.append(socket.create_connection(("127.0.0.1", site.port)))
        if number % 2:
            opened[-1].sendall(b"GET / HTTP/1.1\r\nHost: ")
    assert site.ask("/live", token=None).status == 200
    assert site.ask(f"/queue?type={queue}").status == 200
    assert opened[0].recv(1) == b""  # the oldest are closed first
    for one in opened:
        one.close()


def test_a_head_that_comes_byte_by_byte_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)

    async def slow() -> float:
        config = uvicorn.Config(None, http=connections.Impatient, ws="none", lifespan="off", log_config=None)
        config.load()
        state = uvicorn.server.ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: connections.Impatient(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        consumer, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        began = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() - began < 10 and not consumer.at_eof():
                writer.write(b"G")
                await writer.drain()  # raises after a reset, which is no end of file
                await asyncio.sleep(0.05)
        server.close()
        return time.monotonic() - began

    assert asyncio.run(slow()) < 5


# ---- live ----------------------------------------------------------------------------------------


def stream(site: Site, path: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
    return connection.getresponse()


def test_a_stream_sends_the_part_of_a_page_that_has_changed(serve: Serve, session: Session, queue: str) -> None:
    response = stream(serve(), f"/events?page=/&queue={queue}")
    assert response.getheader("Content-Type", "").startswith("text/event-stream")
    session.call("send", queue, "x")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        line = response.readline().decode()
        if line.startswith("data: ") and f"type={queue}" in (html := json.loads(line[6:])):
            assert "<html" not in html
            return
    pytest.fail("the new queue never came")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_even_while_a_page_is_updated(serve: Serve, number: signal.Signals) -> None:
    site = serve()
    response = stream(site, "/events?page=/")
    response.readline()
    began = time.monotonic()
    assert site.running.stop(number) == 0
    assert time.monotonic() - began < 4
    assert "Traceback" not in site.running.stderr


# ---- under a path --------------------------------------------------------------------------------


def test_under_a_path_every_link_begins_with_it(serve: Serve, session: Session, queue: str) -> None:
    dead_letters(session, queue, "broken", 1)
    site = serve("--allow-changes", root="/queues")
    for path in ("/queues/", "/", "/queues", f"/queues/queue?type={queue}&state=E"):
        answer = site.ask(path)
        assert answer.status == 200, path
        links = re.findall(r'(?:href|src|action|data-events|value)="(/[^"]*)"', answer.text)
        assert len(links) > 10
        assert [link for link in links if not link.startswith("/queues/")] == []
    answer = site.ask(f"/queues/?token={TOKEN}", token=None)
    assert answer.headers["location"] == f"{site.base}/"
    assert site.base.startswith("/queues/")
    assert f"Path={site.base}" in answer.headers["set-cookie"].split("; ")
    # Nothing is redirected to the host that a request names.
    assert site.ask("/queues/queue/", Host="evil.example").status == 421
    assert site.ask("/queues/queue/").status == 404


# ---- several databases ---------------------------------------------------------------------------


@pytest.mark.product("postgresql")
def test_a_stopped_database_is_shown_as_unreachable_and_comes_back(
    serve: Serve, database: Database, private_server: servers.Server, session: Session, queue: str
) -> None:
    session.call("send", queue, "x")
    url = private_server.create_database()
    install.apply(open_database(url))
    other = open_database(url).connect("test")
    other.call("send", "other.queue", "x")
    other.close()
    site = serve("--database", f"one={database.url}", "--database", f"two={url}")
    assert f"type={queue}" in site.ask(f"/?queue={queue}").text
    assert "other.queue" in site.ask("/?queue=other.queue").text
    private_server.stop()
    until(lambda: "Away." in site.ask(f"/?queue={queue}").text, seconds=30)  # a cached answer is shown for a moment
    one = site.ask(f"/?queue={queue}")
    assert one.status == 200
    assert f"type={queue}" in one.text
    assert "other.queue" not in site.ask("/").text
    assert site.ask("/queue?db=two&type=other.queue").status == 503
    private_server.start()
    until(lambda: "other.queue" in site.ask("/").text, seconds=30)


# ---- texts ---------------------------------------------------------------------------------------


def test_steering_characters_are_shown_by_their_numbers() -> None:
    assert shown.visible("a\0b\x1b[2J\u202ec\r\nd\te") == "a⟨U+0000⟩b⟨U+001B⟩[2J⟨U+202E⟩c\nd\te"
    assert shown.one_line("a\n\n  b" + "c" * 500, 10) == "a bcccccc…"


def test_json_is_indented_and_keeps_what_it_says() -> None:
    text = '{"a":1.10,"a":12345678901234567890,"b":[],"c":{},"d":["x, {y}",null,{"e":"\\""}]}'
    found, is_json = shown.pretty(text)
    assert is_json
    assert found.splitlines() == [
        "{", '  "a": 1.10,', '  "a": 12345678901234567890,', '  "b": [],', '  "c": {},', '  "d": [', '    "x, {y}",',
        "    null,", "    {", '      "e": "\\""', "    }", "  ]", "}",
    ]  # fmt: skip
    assert shown.pretty('{"a": ') == ('{"a": ', False)
    assert shown.pretty("") == ("", False)
    assert shown.pretty("[" * 100_000) == ("[" * 100_000, False)
