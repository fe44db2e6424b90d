"""Microsoft's own T-SQL parser: the SQL Tools Service, a language server that tests/servers/fetch.py downloads. Its
grammar is that of SQL Server 2017, without a catalog: it knows neither tables nor functions."""

import itertools
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from servers import Unavailable, fetch

_ERROR = "SELECT )"
_SECONDS = 60


class Parser:
    """One process for any number of texts: most of the time goes into its start."""

    def __init__(self) -> None:
        tools = fetch.sql_tools()
        if tools is None:
            raise Unavailable("no T-SQL parser from Microsoft: python3 tests/servers/fetch.py")
        self._folder = tempfile.TemporaryDirectory()
        self._complaints = Path(self._folder.name, "stderr")
        with self._complaints.open("wb") as complaints:
            self._process = subprocess.Popen(
                [tools.service, "--log-file", Path(self._folder.name, "log"), "--tracing-level", "Off"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env=os.environ | tools.environment,
            )
        self._numbers = itertools.count(1)
        try:
            self._send("initialize", {"processId": os.getpid(), "capabilities": {}}, id="1")
            while self._receive().get("id") != "1":
                pass
        except OSError as error:
            self.close()
            raise Unavailable(f"the T-SQL parser from Microsoft does not start: {error}") from error

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def errors(self, texts: Sequence[str]) -> list[list[str]]:
        """Of each text the errors, as `line 3: Incorrect syntax near ')'.`

        All go in one document, as the service waits for most of a second before it looks at one. After each comes an
        error of ours: where it is not found, the text before it, or an earlier one, has not come to its end.
        """
        parts = [f"{text}\nGO\n{_ERROR}\nGO\n" for text in texts]
        uri = f"file:///{next(self._numbers)}.sql"
        document = {"uri": uri, "languageId": "sql", "version": 1, "text": "".join(parts)}
        self._send("textDocument/didOpen", {"textDocument": document})
        # Some errors take it hours.
        timer = threading.Timer(_SECONDS, self._process.kill)
        timer.start()
        message: dict[str, Any] = {}
        while message.get("method") != "textDocument/publishDiagnostics" or message["params"]["uri"] != uri:
            message = self._receive()
        timer.cancel()
        self._send("textDocument/didClose", {"textDocument": document})
        whose = [(number, line) for number, part in enumerate(parts) for line in range(1, part.count("\n") + 1)]
        found: list[dict[int, list[str]]] = [{} for _ in parts]
        for diagnostic in message["params"]["diagnostics"]:
            number, line = whose[min(diagnostic["range"]["start"]["line"], len(whose) - 1)]
            found[number].setdefault(line, []).append(diagnostic["message"])
        result = []
        for part, lines in zip(parts, found, strict=True):
            ended = lines.pop(part.count("\n") - 1, None)
            result.append([f"line {line}: {message}" for line in lines for message in lines[line]])
            if not ended:
                result[-1].append("its end was not seen: something before it is not closed")
        return result

    def _send(self, method: str, parameters: dict[str, Any], **more: str) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": parameters, **more}
        content = json.dumps(message).encode()
        assert self._process.stdin
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        """The next message, be it an answer or an event."""
        source = self._process.stdout
        assert source
        size = 0
        while (line := source.readline()) != b"\r\n":
            if not line:
                raise OSError(self._complaints.read_text("utf-8", "replace")[-800:] or "it has ended, or was ended")
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                size = int(value)
        message: dict[str, Any] = json.loads(source.read(size))
        return message
