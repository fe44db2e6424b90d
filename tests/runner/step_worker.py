"""A worker with three steps; the body says after which of them it crashes, once, and what else it does."""

import json
import os
import sys
from typing import Any


def ask(**values: Any) -> Any:
    print(json.dumps(values), flush=True)
    return json.loads(sys.stdin.readline())


for line in sys.stdin:
    message = json.loads(line)
    id, body = message["id"], json.loads(message["body"])
    if "write" in body:
        print(body["write"].replace("ID", str(id)), flush=True)
        continue
    if "bad_name" in body:
        print(json.dumps({"id": id, "error": ask(id=id, save_step=body["bad_name"])["error"]}), flush=True)
        continue
    kept = ask(id=id, get_steps=True)["steps"]
    for n in (1, 2, 3):
        if f"step {n}" in kept:
            assert kept[f"step {n}"] == {"n": [n, "ä\u2028"]}
            continue
        print(f"ran {id} {n}", file=sys.stderr, flush=True)
        assert ask(id=id, save_step=f"step {n}", value={"n": [n, "ä\u2028"]}) == {"id": id, "saved": f"step {n}"}
        if body.get("crash_after") == n:
            os._exit(1)
    print(json.dumps({"id": id, **({"snooze_seconds": body["snooze"]} if "snooze" in body else {})}), flush=True)
