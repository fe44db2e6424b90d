"""A worker for the tests: does what the body of each message says, and logs each message to JOBS_LOG."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any


def note(value: Any) -> None:
    with open(os.environ["JOBS_LOG"], "ab", buffering=0) as log:  # noqa: PTH123
        log.write(json.dumps(value).encode() + b"\n")


def say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def obey(message: dict[str, Any]) -> None:
    id, (word, _, rest) = message["id"], message["body"].partition(" ")
    if word == "fail":
        return say(id=id, error="not now")
    if word == "retry":
        return say(id=id, error="not now", retry_after_seconds=float(rest))
    if word == "dead":
        return say(id=id, error=rest, dead=True) if rest else say(id=id, dead=True)
    if word == "result":
        return say(id=id, result=rest)
    if word == "exit":
        print("first line\nlast words", file=sys.stderr, flush=True)
        os._exit(int(rest))
    if word == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "orphan":  # a child that holds all pipes open
        subprocess.Popen(["sleep", "600"])
        os._exit(5)
    if word == "mute":
        os.close(1)
        time.sleep(600)
    if word == "raw":
        sys.stdout.write(rest + "\n")
        sys.stdout.flush()
        time.sleep(600)
    if word == "long":
        sys.stdout.write("x" * (2 << 20))
        sys.stdout.flush()
    if word == "unknown":
        say(id=id + 1_000_000)
    if word == "twice":
        say(id=id)
    if word == "both":
        line = json.dumps({"id": id}) + "\n"
        os.write(1, (line + line).encode())
        return None
    if word == "never":
        time.sleep(600)
    if word == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    if word == "sleep":
        time.sleep(float(rest))
        note("woke")
    say(id=id)


if __name__ == "__main__":
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    if mode == "echo":  # big answers while big messages come
        for line in sys.stdin.buffer:
            message = json.loads(line)
            sys.stderr.write("e" * 100_000 + "\n")
            say(id=message["id"], error=message["body"][:900_000], dead=True)
    elif mode == "reverse":
        while data := os.read(0, 1 << 20):  # short messages: only whole lines come
            for line in reversed(data.splitlines()):
                note(json.loads(line)["body"])
                say(id=json.loads(line)["id"])
    elif mode == "lines":
        for line in sys.stdin.buffer:
            note(line.decode())
            say(id=json.loads(line)["id"])
    else:
        note(["started", os.getpid(), os.environ["ROWQUEUE_PROTOCOL"], os.getpgid(0) == os.getpid()])
        for line in sys.stdin.buffer:
            message = json.loads(line)
            note(message["body"])
            time.sleep(0.005 if mode == "slowly" else 0)
            obey(message)
        note("end of file")
        if mode == "stays":
            time.sleep(600)
