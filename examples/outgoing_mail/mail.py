"""A handler for `runner consume` that hands mails to an SMTP server.

A message is {"sender": …, "recipient": …, "message": …}: one recipient, because the server answers for each one
alone. Were all recipients of a mail in one message and one of them refused for now, trying again would send the mail
twice to the others.

SMTP_SERVER names the server (host:port, localhost:25 if not set), MAIL_RETRY_SECONDS the delay before a mail is
offered again that the server did not want now (300).
"""

import json
import os
import smtplib
import threading
import time

from rowqueue import Discard, Message, Retry

SERVER = os.environ.get("SMTP_SERVER", "localhost:25")
HOST, PORT = SERVER.rpartition(":")[0], int(SERVER.rpartition(":")[2])
RETRY_SECONDS = float(os.environ.get("MAIL_RETRY_SECONDS", "300"))
TIMEOUT = 20  # seconds for an answer; below the lease of the queue
IDLE_SECONDS = 10

_thread = threading.local()  # smtplib's connections are not for sharing: one a thread, kept open


def send(message: Message) -> None:
    """Send one mail. Refused for good (5xx): a dead letter with the server's words; not now (4xx): tried again."""
    sender, recipient, mail = envelope(message.body)
    try:
        connection().sendmail(sender, [recipient], mail)
    except smtplib.SMTPRecipientsRefused as error:
        raise refusal(*error.recipients[recipient]) from error
    except smtplib.SMTPResponseException as error:  # the greeting, the sender or the mail was refused
        close()
        raise refusal(error.smtp_code, error.smtp_error) from error
    except (smtplib.SMTPException, OSError) as error:
        close()
        raise Retry(f"{SERVER}: {error}", after=RETRY_SECONDS) from error
    _thread.used = time.monotonic()


def envelope(body: str) -> tuple[str, str, bytes]:
    """The three parts of a message; what is none can never be sent."""
    try:
        parts = json.loads(body)
        return parts["sender"], parts["recipient"], parts["message"].encode("ascii")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Discard(f"not a mail: {type(error).__name__}: {error}") from error


def refusal(code: int, text: bytes | str) -> Exception:
    """What the server's answer means for the message."""
    answer = f"{code} {text.decode('utf-8', 'replace') if isinstance(text, bytes) else text}"
    return Discard(answer) if code >= 500 else Retry(answer, after=RETRY_SECONDS)


def connection() -> smtplib.SMTP:
    """This thread's connection, made anew when there is none or the server has closed it."""
    smtp: smtplib.SMTP | None = getattr(_thread, "smtp", None)
    if smtp is not None and time.monotonic() - _thread.used > IDLE_SECONDS and not answers(smtp):
        close()
        smtp = None
    if smtp is None or smtp.sock is None:  # smtplib itself closes after a 421
        smtp = _thread.smtp = smtplib.SMTP(HOST, PORT, timeout=TIMEOUT)
        _thread.used = time.monotonic()
    return smtp


def answers(smtp: smtplib.SMTP) -> bool:
    """Servers close what has been idle for long."""
    try:
        return smtp.noop()[0] == 250
    except (smtplib.SMTPException, OSError):
        return False


def close() -> None:
    """Drop this thread's connection: what state it is in is not known."""
    if (smtp := getattr(_thread, "smtp", None)) is not None:
        smtp.close()
        _thread.smtp = None
