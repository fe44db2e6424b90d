"""A worker in Python: reads messages and answers each with a line of JSON."""

import json
import sys


def handle(message: dict) -> dict:
    """The answer to a message; an empty one when it is done."""
    if message["body"].startswith("dead"):
        return {"error": "can never succeed", "dead": True}
    if message["body"].startswith("fail"):
        return {"error": "not now", "retry_after_seconds": 60}
    return {}


for line in sys.stdin.buffer:
    message = json.loads(line)
    print(json.dumps({"id": message["id"], **handle(message)}), flush=True)
