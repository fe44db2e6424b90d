"""examples/deployment: the commands exist, the files can be read, and the times fit together."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

FILES = Path(__file__).resolve().parents[2] / "examples" / "deployment"
Runner = Callable[..., subprocess.CompletedProcess[str]]
pytestmark = pytest.mark.product("postgresql")


def unit() -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", (FILES / "rowqueue@.service").read_text("utf-8"), re.M))


def containers() -> list[tuple[dict, dict]]:  # type: ignore[type-arg]
    """Each container of kubernetes.yaml with its pod."""
    found = yaml.safe_load_all((FILES / "kubernetes.yaml").read_text("utf-8"))
    pods = [document["spec"]["template"]["spec"] for document in found]
    return [(container, pod) for pod in pods for container in pod["containers"]]


def commands() -> list[list[str]]:
    """The arguments of the runner in each file."""
    image = re.search(r"^CMD (\[.*\])$", (FILES / "Containerfile").read_text("utf-8"), re.M)
    assert image is not None
    service = unit()["ExecStart"].replace("%i", "email").replace("${HANDLER}", "mail:send").replace(" $OPTIONS", "")
    return [yaml.safe_load(image[1]), shlex.split(service)[1:], *(found["args"] for found, _ in containers())]


def test_the_runner_knows_each_option(runner: Runner) -> None:
    for command in commands():
        known = runner(command[0], "--help").stdout
        options = [word for word in command if word.startswith("--")]
        assert [option for option in options if not re.search(rf"{option}\b", known)] == []


def test_processes_are_killed_only_after_the_time_that_handlers_have() -> None:
    def seconds(command: list[str]) -> int:
        return int(command[command.index("--shutdown-timeout") + 1])

    assert int(unit()["TimeoutStopSec"]) > seconds(shlex.split(unit()["ExecStart"]))
    for container, pod in containers():
        if container["args"][0] == "consume":
            assert pod["terminationGracePeriodSeconds"] > seconds(container["args"])
            assert all("9400" in container[name]["exec"]["command"][-1] for name in ("livenessProbe", "readinessProbe"))
            assert container["args"][container["args"].index("--health-port") + 1] == "9400"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    path = tmp_path / "rowqueue@email.service"
    text = (FILES / "rowqueue@.service").read_text("utf-8")
    path.write_text(re.sub(r"/opt/shop/.venv/bin/runner", "/bin/true", text).replace("User=rowqueue\n", ""))
    done = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True)
    assert str(path.name) not in done.stderr, done.stderr
