"""A worker that reports how far it is, then asks until its message is cancelled."""

import json
import sys
import time
from typing import Any


def ask(**values: Any) -> Any:
    print(json.dumps(values), flush=True)
    return json.loads(sys.stdin.readline())


for line in sys.stdin:
    id = json.loads(line)["id"]
    assert ask(id=id, save_step="progress", value={"done": 1, "total": 3, "note": "page 1"})["saved"] == "progress"
    while not ask(id=id, get_cancelled=True)["cancelled"]:
        time.sleep(0.1)
    assert "cancelled" in ask(id=id, save_step="late")["error"]
    print(json.dumps({"id": id, "error": "cancelled"}), flush=True)
