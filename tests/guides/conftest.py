import sys
from pathlib import Path

# shops.py, which the suites of all guides share.
sys.path.append(str(Path(__file__).parent))
