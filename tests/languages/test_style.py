"""Users copy the examples, so each follows the usual style of its language, as a common style checker defines it."""

import shutil
import subprocess

import pytest
from languages import ALL, EXAMPLES, Language


@pytest.mark.parametrize("language", ALL, ids=lambda language: language.name)
def test_examples_have_the_usual_style(language: Language, pytestconfig: pytest.Config) -> None:
    if not shutil.which(language.style.program):
        reason = f"{language.style.program} is not installed"
        if pytestconfig.getoption("--require-databases"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    command = ["sh", "-c", language.style.check]
    done = subprocess.run(command, cwd=EXAMPLES / language.name, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
