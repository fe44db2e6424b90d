"""A worker that does nothing, and reports the messages and the seconds from its first message to its last."""

import json
import os
import sys
import time
from pathlib import Path

count, first, last = 0, 0.0, 0.0
for line in sys.stdin.buffer:
    last = time.monotonic()
    first = first or last
    count += 1
    print(json.dumps({"id": json.loads(line)["id"]}), flush=True)
Path(os.environ["BENCHMARK_FILE"]).write_text(f"{count - 1} {first} {last} 0 0\n")
