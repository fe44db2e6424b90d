"""A handler for `runner consume` that hands mails to an SMTP server.

A message is {"sender": …, "recipient": …, "message": …}, with one recipient: the server accepts or refuses each
recipient separately. With several recipients in a message and one of them deferred, a retry would send the mail
to the others twice.

SMTP_SERVER names the server (host:port, localhost:25 if not set). MAIL_RETRY_SECONDS is the delay before a deferred
mail is retried (300).
"""

import json
import os
import smtplib
import threading
import time

from rowqueue import DeadLetter, Message, Retry

SERVER = os.environ.get("SMTP_SERVER", "localhost:25")
HOST, PORT = SERVER.rpartition(":")[0], int(SERVER.rpartition(":")[2])
RETRY_SECONDS = float(os.environ.get("MAIL_RETRY_SECONDS", "300"))
TIMEOUT = 20  # seconds for an answer; below the lease of the queue
IDLE_SECONDS = 10

_thread = threading.local()  # threads cannot share smtplib's connections: one per thread, kept open


def send(message: Message) -> None:
    """Send one mail. Refused for good (5xx): a dead letter with the server's answer. Deferred (4xx): retried."""
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
    """The three parts of a message. Raises DeadLetter for an invalid one."""
    try:
        parts = json.loads(body)
        return parts["sender"], parts["recipient"], parts["message"].encode("ascii")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DeadLetter(f"not a mail: {type(error).__name__}: {error}") from error


def refusal(code: int, text: bytes | str) -> Exception:
    """The exception that the server's answer means for the message."""
    answer = f"{code} {text.decode('utf-8', 'replace') if isinstance(text, bytes) else text}"
    return DeadLetter(answer) if code >= 500 else Retry(answer, after=RETRY_SECONDS)


def connection() -> smtplib.SMTP:
    """This thread's connection; opened again if there is none or the server has closed it."""
    smtp: smtplib.SMTP | None = getattr(_thread, "smtp", None)
    if smtp is not None and time.monotonic() - _thread.used > IDLE_SECONDS and not answers(smtp):
        close()
        smtp = None
    if smtp is None or smtp.sock is None:  # smtplib itself closes after a 421
        smtp = _thread.smtp = smtplib.SMTP(HOST, PORT, timeout=TIMEOUT)
        _thread.used = time.monotonic()
    return smtp


def answers(smtp: smtplib.SMTP) -> bool:
    """Whether the connection still works: servers close idle ones."""
    try:
        return smtp.noop()[0] == 250
    except (smtplib.SMTPException, OSError):
        return False


def close() -> None:
    """Drop this thread's connection, because its state is unknown."""
    if (smtp := getattr(_thread, "smtp", None)) is not None:
        smtp.close()
        _thread.smtp = None
