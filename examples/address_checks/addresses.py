"""A handler for `runner consume`: ask a service whether an address exists.

A message is {"id": 17, "address": "1 Main Street"}. The service accepts a few requests at a time and per second;
the queue's limits keep the consumers below that. ADDRESS_SERVICE is its URL.
"""

import json
import os
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

from rowqueue import DeadLetter, Message

SECONDS = 10  # the longest wait for an answer


def check(message: Message) -> str:
    """Ask the service about one address; the return value is the message's result."""
    try:
        question = json.loads(message.body)
        query = urlencode({"q": question["address"]})
    except (ValueError, TypeError, KeyError) as error:
        raise DeadLetter(f"not a question about an address: {error}") from error
    try:
        with urlopen(f"{os.environ['ADDRESS_SERVICE']}?{query}", timeout=SECONDS) as answer:
            return str(answer.read().decode("utf-8"))
    except HTTPError as error:
        if 400 <= error.code < 500 and error.code != 429:
            raise DeadLetter(f"the service refuses it: {error}") from error
        raise
