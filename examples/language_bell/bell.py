"""Two handlers for `runner consume`: what happens when somebody adds a language.

Messages come from a subscription: {"table": "languages", "action": "I", "key": {"code": "de"}}. They say which row was
added and no more: a handler that needs the rest of it reads the row, which may have changed since.

SMTP_SERVER names the mail server (host:port, localhost:25 if not set), BELL_MAIL_TO and BELL_MAIL_FROM the addresses.
"""

import json
import os
import smtplib
from email.message import EmailMessage
from email.policy import SMTP

from rowqueue import Discard, Message, Retry

SERVER = os.environ.get("SMTP_SERVER", "localhost:25")
SENDER = os.environ.get("BELL_MAIL_FROM", "bell@shop.example")
RECIPIENT = os.environ.get("BELL_MAIL_TO", "translators@shop.example")
TIMEOUT = 20  # seconds for an answer; below the lease of the queue
RETRY_SECONDS = 5


def ring(message: Message) -> None:
    """Ring the terminal's bell."""
    print(f"\anew language: {code(message)}", flush=True)


def mail(message: Message) -> None:
    """Tell the translators. At least once: the Message-ID lets the receiver know a mail that comes again."""
    letter = EmailMessage(policy=SMTP)
    letter["From"], letter["To"] = SENDER, RECIPIENT
    letter["Subject"] = f"New language: {code(message)}"
    letter["Message-ID"] = f"<language-{message.id}@shop.example>"
    letter.set_content("Please translate the texts of the shop.")
    host, _, port = SERVER.rpartition(":")
    try:
        with smtplib.SMTP(host, int(port), timeout=TIMEOUT) as server:
            server.send_message(letter)
    except (smtplib.SMTPException, OSError) as error:
        raise Retry(f"{SERVER}: {error}", after=RETRY_SECONDS) from error


def code(message: Message) -> str:
    """The key of the new row, whatever the database makes of its column's name."""
    try:
        [value] = json.loads(message.body)["key"].values()
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Discard(f"not an event of the table: {error}") from error
    return str(value)
