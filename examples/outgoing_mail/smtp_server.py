"""A small SMTP server that delivers to a Maildir. It refuses some recipients, as real servers do.

Usage:  python smtp_server.py [--port 2525] [--maildir ./mail]

Addresses at gone.example do not exist (550). For addresses at greylist.example, a sender must try twice (451 at
first). Each pair of Message-ID and recipient is delivered once; a repeated one is accepted and dropped. That
is the receiver's part of exactly-once: a sender that got no answer has to send again.
"""

import argparse
import asyncio
import hashlib
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from pathlib import Path

from aiosmtpd.smtp import SMTP, Envelope, Session

GONE = "gone.example"
GREYLISTED = "greylist.example"


class Mailbox:
    """The server's rules, as aiosmtpd calls them. `answers` counts: delivered, again, deferred, refused."""

    def __init__(self, maildir: Path) -> None:
        self._maildir = maildir
        self._seen: set[tuple[str | None, str]] = set()
        self.answers: Counter[str] = Counter()
        for part in ("tmp", "new", "cur"):
            (maildir / part).mkdir(parents=True, exist_ok=True)

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Answer to RCPT TO."""
        domain = address.rpartition("@")[2].lower()
        if domain == GONE:
            self.answers["refused"] += 1
            return f"550 5.1.1 <{address}>: no such mailbox here"
        if domain == GREYLISTED and (envelope.mail_from, address) not in self._seen:
            self._seen.add((envelope.mail_from, address))
            self.answers["deferred"] += 1
            return f"451 4.7.1 <{address}>: greylisted, try again later"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Answer to the end of DATA, after the mail is in the Maildir."""
        assert isinstance(envelope.content, bytes)
        for recipient in envelope.rcpt_tos:
            new = self._deliver(envelope.mail_from or "", recipient, envelope.content)
            self.answers["delivered" if new else "again"] += 1
        return "250 2.0.0 OK"

    def _deliver(self, sender: str, recipient: str, content: bytes) -> bool:
        """Put a mail into the Maildir unless it exists; completely or not at all, even if two connections bring it."""
        identity = message_from_bytes(content)["Message-ID"] or hashlib.sha256(content).hexdigest()
        name = hashlib.sha256(f"{identity}\n{recipient}".encode()).hexdigest()[:40]
        written = self._maildir / "tmp" / f"{name}.{os.getpid()}.{threading.get_ident()}"
        envelope = f"Return-Path: <{sender}>\nDelivered-To: {recipient}\n".encode()
        written.write_bytes(envelope + content.replace(b"\r\n", b"\n"))
        try:
            os.link(written, self._maildir / "new" / name)  # fails if the name exists; a rename would not
        except FileExistsError:
            return False
        finally:
            written.unlink()
        return True


@contextmanager
def serving(mailbox: Mailbox, port: int = 0) -> Iterator[int]:
    """Serve 127.0.0.1 in a thread; yields the port. 0: any free port. Raises OSError when the port is taken."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="smtp", daemon=True)
    thread.start()
    try:
        server = asyncio.run_coroutine_threadsafe(_listen(mailbox, port), loop).result()
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            asyncio.run_coroutine_threadsafe(_end(server), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _listen(mailbox: Mailbox, port: int) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: SMTP(mailbox, hostname="localhost", loop=loop), "127.0.0.1", port)


async def _end(server: asyncio.Server) -> None:
    """Stop listening and drop open connections."""
    server.close()
    connections = asyncio.all_tasks() - {asyncio.current_task()}
    for connection in connections:
        connection.cancel()
    await asyncio.gather(*connections, return_exceptions=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Receive mails by SMTP into a Maildir.")
    parser.add_argument("--port", type=int, default=2525, help="0 to 65,535; 0: a free one (2525)")
    parser.add_argument("--maildir", type=Path, default=Path("mail"), help="created if needed (./mail)")
    options = parser.parse_args()
    if not 0 <= options.port <= 65_535:
        parser.error("--port: must be 0 to 65,535")
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        mailbox = Mailbox(options.maildir)
        with serving(mailbox, options.port) as port:
            print(f"listening on 127.0.0.1:{port}, delivering to {options.maildir}", flush=True)
            ended.wait()
    except OSError as error:
        parser.exit(1, f"smtp_server.py: {error}\n")
    print(", ".join(f"{count} {answer}" for answer, count in sorted(mailbox.answers.items())) or "nothing came")


if __name__ == "__main__":
    main()
