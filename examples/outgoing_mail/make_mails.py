"""Writes the outgoing mails of an example shop as NDJSON, the same bytes in every run.

Usage:  python make_mails.py [--mails 1000] > mails.ndjson

One line per recipient, which is one queue message: {"sender": …, "recipient": …, "message": …}, the message in the
form of RFC 5322. Addresses at gone.example are refused for good by smtp_server.py, those at greylist.example once.
"""

import argparse
import json
import random
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

SEED = 5322
SENDER = Address("Müller & Söhne", "orders", "shop.example")
START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
LARGEST_ATTACHMENT = 200 * 1024
# Only ASCII is sent, for servers that support nothing else: other text becomes base64 or quoted-printable.
POLICY = SMTP.clone(cte_type="7bit")

NAMES = ["Ada Lovelace", "Åsa Öberg", "José Núñez", "Łukasz Żak", "山田 花子", "Nguyễn Văn An", "Zoë O'Brien", "Мария"]
# ruff: noqa: RUF001  (other alphabets are intended here)
SUBJECTS = [
    "Your order {n} is on its way",
    "Ihre Bestellung {n} – Rückfrage zur Größe",
    "ご注文 {n} を発送しました",
    "Заказ {n}: уже в пути",
    "طلبك رقم {n} في الطريق",
    "🎉 Order {n}: thank you!",
    "Παραγγελία {n}: επιβεβαίωση παραλαβής και οδηγίες για την επιστροφή προϊόντων εντός δεκατεσσάρων ημερών",
]
PARAGRAPHS = [
    "Thank you for your order.",
    "Die Lieferung erfolgt in zwei Paketen; bitte prüfen Sie beide.",
    ".\r\n..two lines that begin with a dot, which SMTP must double and undouble\r\n",
    "お問い合わせは返信でお願いいたします。",
    "From here on, questions go to our service desk.",
]
DOMAINS = ["example.com", "example.net", "example.org"]


def recipients(rng: random.Random, number: int) -> list[Address]:
    """One to five people; about one in twenty has moved away, and one in twelve is behind a greylisting server."""
    found = []
    for place in range(rng.choices([1, 2, 3, 5], [70, 18, 8, 4])[0]):
        domain = rng.choices([rng.choice(DOMAINS), "gone.example", "greylist.example"], [87, 5, 8])[0]
        found.append(Address(rng.choice(NAMES), f"customer{number}.{place}", domain))
    return found


def mail(rng: random.Random, number: int) -> tuple[EmailMessage, list[Address]]:
    """One mail and all its recipients, including Bcc."""
    to = recipients(rng, number)
    message = EmailMessage(policy=POLICY)
    message["From"] = SENDER
    message["To"] = to[:2]
    if to[2:4]:
        message["Cc"] = to[2:4]  # a fifth is in Bcc: named to the server, but not in the mail
    message["Subject"] = rng.choice(SUBJECTS).format(n=number)
    message["Date"] = START + timedelta(minutes=number)
    message["Message-ID"] = f"<order-{number}@shop.example>"
    text = "\r\n\r\n".join(rng.sample(PARAGRAPHS, 3))
    message.set_content(text)
    if rng.random() < 0.3:
        message.add_alternative(f"<html><body><p>{text}</p></body></html>", subtype="html")
    if number % 8 == 0:
        # Most are small; every 200th mail has the largest ones.
        size = LARGEST_ATTACHMENT if number % 200 == 0 else int(rng.triangular(1_000, LARGEST_ATTACHMENT, 20_000))
        message.add_attachment(
            rng.randbytes(size), maintype="application", subtype="pdf", filename=f"Rechnung-für-{number}.pdf"
        )
    for place, part in enumerate(part for part in message.walk() if part.is_multipart()):
        part.set_boundary(f"=_order_{number}_{place}")  # otherwise it is random
    return message, to


def lines(mails: int) -> Iterator[str]:
    """The NDJSON lines of `mails` mails."""
    rng = random.Random(SEED)
    for number in range(1, mails + 1):
        message, to = mail(rng, number)
        text = message.as_bytes().decode("ascii")
        for address in to:
            yield json.dumps({"sender": SENDER.addr_spec, "recipient": address.addr_spec, "message": text})


def main() -> None:
    parser = argparse.ArgumentParser(description="Write mails to send as NDJSON, one line per recipient.")
    parser.add_argument("--mails", type=int, default=1000, help="how many, 1 to 1,000,000 (1000)")
    mails = parser.parse_args().mails
    if not 1 <= mails <= 1_000_000:
        parser.error("--mails: must be 1 to 1,000,000")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` is not an error
    for line in lines(mails):
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
