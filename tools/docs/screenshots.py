"""Makes the screenshots in docs/images, with an embedded PostgreSQL and example queues.

`runner web` as Debian's Chromium shows it, and `runner top` as Textual draws it. The other pictures there are drawings.

Usage: make screenshots
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rowqueue.databases import Database, Session, open_embedded
from rowqueue.extras.monitor import Watched
from rowqueue.extras.top.frame import Top
from rowqueue.extras.top.queues import QueuesScreen
from rowqueue.install import apply as install
from rowqueue.messages import Failure

FOLDER = Path(__file__).parents[2] / "docs" / "images"
TOKEN = "only-for-screenshots"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
WIDTH, HEIGHT = 1180, 700
COLUMNS, LINES = 100, 18  # of the terminal
SHOWN_AT = datetime(2026, 11, 23, 18, 40, 12, tzinfo=UTC)
RATES = (("mail-1", "email", 410), ("mail-2", "email", 380), ("shop-1", "orders", 60), ("billing-1", "invoices", 90))


def fill(session: Session) -> int:
    """Queues as in a shop; returns the id of a dead letter."""
    session.call("set_queue", "invoices", 30, 5, 10, 600, "archive", None, None, 20, 100, 60)
    session.call("set_queue", "orders", 30, 5, 10, 600, "delete", 1, None)
    mails = [json.dumps({"to": f"user{n}@example.com", "subject": "Your invoice", "invoice": n}) for n in range(900)]
    session.call("send_batch", "email", "\n".join(mails))
    session.call("send_batch", "invoices", "\n".join(mails[:230]))
    session.call("send_batch", "thumbnails", "\n".join(mails[:40]))
    for number in range(12):
        values = (None, 0, f"customer-{number % 5}", f"order-{number}", None, '{"trace": "4bf92f35"}', "shop")
        session.call("send_message", "orders", json.dumps({"order": number, "items": [17, 4]}), *values)
    session.call("send_message", "email", mails[0], None, None, None, None, None, None, None, 3600)
    dead(session, 417, "ConnectionRefusedError: [Errno 111] mail.example.com:25 refused the connection")
    dead(session, 38, "SMTPRecipientsRefused: 550 no such mailbox")
    session.call("claim_batch", "invoices", 15, "billing-1", 600)
    session.call("pause", "thumbnails")
    session.call("set_schedule", "nightly report", "invoices", "0 3 * * *", '{"report": "daily"}', "Europe/Berlin")
    session.call("bind_topic", "order.*", "orders")
    now = session.now()
    for consumer, type, rate in RATES:
        session.call("report_consumer", consumer, type, rate, rate // 40, 0, rate * 60, rate * 300, rate, now, 60)
        history(session, now, consumer, type, rate)
    [letter] = session.call("peek", "email", "E", 1)
    number: int = letter["id"]
    return number


def dead(session: Session, count: int, error: str) -> None:
    rows = session.call("claim_batch", "email", count, "mail-1")
    session.call("finish_batch", rows[0]["batch_key"], "\n".join(Failure(row["id"], -1, error).line() for row in rows))


def history(session: Session, now: datetime, consumer: str, type: str, rate: int) -> None:
    """The last hour. Reports have the current time, so earlier ones are written directly into the table."""
    with session.transaction() as connection:
        for back in range(1, 60):
            completed = rate * (100 + back * 37 % 50) // 120 if not 20 < back < 27 else rate // 5
            failed = completed // 40 if completed > rate // 5 else rate // 2
            minute = now.replace(second=0, microsecond=0) - timedelta(minutes=back)
            connection.execute(
                "INSERT INTO mq.report VALUES (%s, %s, %s, %s, 0, %s, %s, %s, %s)",
                [minute, completed, completed, failed, completed * 300, completed * 60, type, consumer],
            )


def shoot(base: str, letter: int) -> None:
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    pages = {
        "overview-light": ("/", "light"),
        "overview-dark": ("/", "dark"),
        "queue": ("/queue?type=email&state=E", "light"),
        "message": (f"/message?id={letter}", "light"),
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for name, (address, scheme) in pages.items():
            context = browser.new_context(color_scheme=scheme, viewport={"width": WIDTH, "height": HEIGHT})
            page = context.new_page()
            page.goto(f"{base}/?token={TOKEN}")
            page.goto(page.url.rstrip("/") + address)
            page.screenshot(path=FOLDER / f"{name}.png")
            context.close()
        browser.close()


def shoot_top(database: Database) -> None:
    """`runner top` as an SVG drawing, with the reader's own font: Textual would load one from the network."""
    watched = Watched("top", database, "screenshots")

    async def show() -> str:
        top = Top(watched, QueuesScreen, "postgresql://me@db/shop", 2)
        async with top.run_test(size=(COLUMNS, LINES)) as pilot:
            while top.now is None:
                await pilot.pause(0.1)
            await pilot.pause()
            top.now = SHOWN_AT
            top.show_frame()
            await pilot.pause()
            return top.export_screenshot(title="runner top")

    try:
        drawing = asyncio.run(show())
    finally:
        watched.close()
    drawing = re.sub(r"@font-face \{.*?\}\s*", "", drawing, flags=re.S)
    # Set a size: without one, a browser shows the image 300 pixels wide.
    drawing = re.sub(r'viewBox="0 0 (\S+) (\S+)"', r'viewBox="0 0 \1 \2" width="\1" height="\2"', drawing, count=1)
    (FOLDER / "top.svg").write_text(drawing, "utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="rowqueue-screenshots-") as folder:
        Path(folder).chmod(0o755)  # as root, the server runs as another user
        with open_embedded(Path(folder) / "data") as database:
            install.apply(database)
            session = database.connect("screenshots")
            letter = fill(session)
            session.close()
            shoot_top(database)
            serve_and_shoot(database.url, letter)


def serve_and_shoot(url: str, letter: int) -> None:
    command = [sys.executable, "-m", "rowqueue.cli", "web", "--port", "0", "--database", f"shop={url}"]
    environment = os.environ | {"RUNNER_WEB_TOKEN": TOKEN}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout
        found = re.match(r"(http://\S+)/\?token=", server.stdout.readline())
        try:
            assert found
            shoot(found[1], letter)
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
