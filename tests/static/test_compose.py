"""compose.yaml, as far as it can be checked without a container engine."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import servers
import yaml

TEXT = (Path(__file__).resolve().parents[2] / "compose.yaml").read_text("utf-8")
SERVICES: dict[str, Any] = yaml.safe_load(TEXT)["services"]
URLS = dict(re.findall(r"^# +(TEST_DSN_\w+)=(\S+)", TEXT, re.M))
PASSWORD = "${ROWQUEUE_TEST_PASSWORD:-Throw-away-1}"


def test_every_product_has_a_service_and_a_line_that_says_how_to_test_on_it() -> None:
    assert set(SERVICES) == set(servers._EXTERNAL)
    assert set(URLS) == {f"TEST_DSN_{product.upper()}" for product in servers._EXTERNAL}


@pytest.mark.parametrize("name", servers._EXTERNAL)
def test_a_service_is_the_one_that_the_line_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = f"TEST_DSN_{name.upper()}"
    url = urlsplit(URLS[variable])
    assert url.scheme == name
    assert url.password and PASSWORD.endswith(f":-{url.password}}}")
    assert f"{url.hostname}:{url.port}:" in SERVICES[name]["ports"][0]
    monkeypatch.setenv(variable, URLS[variable])
    assert f"{name}-dsn" in servers.names.__wrapped__()  # what it remembers is of another environment
    assert re.search(rf"{variable}=\S+ (?:\\\n# +)?make test PYTEST_ARGS='-k {name}-dsn'", TEXT)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_for_this_machine_only_and_reports_when_it_is_ready(name: str) -> None:
    service = SERVICES[name]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert [value for key, value in service["environment"].items() if key.endswith("PASSWORD")] == [PASSWORD]
    assert "volumes" not in service
    health = service["healthcheck"]
    assert "127.0.0.1" in health["test"] and health["interval"] and health["retries"]
    # A single $ would be a variable of the machine's.
    variables = re.findall(r"(\$+)(\w+)", health["test"])
    assert all(dollars == "$$" for dollars, _ in variables)
    assert {word for _, word in variables} - {"database"} <= service["environment"].keys()
