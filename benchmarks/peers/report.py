"""results.json as a page: benchmarks/PEERS.md."""
from contenders import HERE
RESULTS = HERE / "results.json"
def write():
    return HERE.parent / "PEERS.md"
