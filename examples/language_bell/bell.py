"""Two handlers for `runner consume`: they react to a new language.

Messages come from a subscription: {"table": "languages", "action": "I", "key": {"code": "de"}}. They name the new
row only by its key. A handler that needs more reads the row, which may have changed since.

SMTP_SERVER names the mail server (host:port, localhost:25 if not set), BELL_MAIL_TO and BELL_MAIL_FROM the addresses.
"""

import json
import os
import smtplib
from email.message import EmailMessage
from email.policy import SMTP

from rowqueue import DeadLetter, Message, Retry

SERVER = os.environ.get("SMTP_SERVER", "localhost:25")
SENDER = os.environ.get("BELL_MAIL_FROM", "bell@shop.example")
RECIPIENT = os.environ.get("BELL_MAIL_TO", "translators@shop.example")
TIMEOUT = 20  # seconds for an answer; below the lease of the queue
RETRY_SECONDS = 5


def ring(message: Message) -> None:
    """Ring the terminal's bell."""
    print(f"\anew language: {code(message)}", flush=True)


def mail(message: Message) -> None:
    """Mail the translators. Delivery is at least once: the receiver recognises a repeated mail by its Message-ID."""
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
    """The key of the new row; databases store the column's name in different cases."""
    try:
        [value] = json.loads(message.body)["key"].values()
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DeadLetter(f"not an event of the table: {error}") from error
    return str(value)
