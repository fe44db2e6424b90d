"""Tests of the clients in other languages that people copy from `examples/`: `make test-languages` runs them."""

import sys
from pathlib import Path

# suite.py, which the tests of all languages share.
sys.path.append(str(Path(__file__).parent))
