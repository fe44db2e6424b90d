"""Numbers of messages as texts, and the time to drain a queue."""

import pytest
from rowqueue.extras.monitor.counts import count, drain_seconds, short_count


@pytest.mark.parametrize(
    ("value", "estimated", "long", "short"),
    [
        (0, False, "0", "0"),
        (9_999, True, "9,999", "9999"),
        (10_000, True, "10,000", "10k"),
        (10_001, True, "≈ 10 k", "≈10k"),
        (66_233, True, "≈ 66 k", "≈66k"),
        (66_233, False, "66,233", "66k"),
        (999_999, True, "≈ 1000 k", "≈1000k"),
        (3_214_567, True, "≈ 3.2 M", "≈3.2M"),
        (4_000_000_000, True, "≈ 4.0 G", "≈4.0G"),
    ],
)
def test_an_estimate_is_rounded_and_says_so(value: int, estimated: bool, long: str, short: str) -> None:
    assert (count(value, estimated), short_count(value, estimated)) == (long, short)


@pytest.mark.parametrize(
    ("ready", "handled", "seconds"),
    [
        (0, [], 0.0),
        (0, [0, 0], 0.0),
        (300_000, [0, 0, 0, 0, 0], None),
        (300_000, [], None),
        (300_000, [1_000] * 5, 18_000.0),
        # The consumer was started two minutes ago, and handled nothing in the second of them.
        (100, [0, 0, 0, 20, 0], 600.0),
    ],
)
def test_the_rate_of_the_last_minutes_gives_the_time_to_drain(
    ready: int, handled: list[int], seconds: float | None
) -> None:
    assert drain_seconds(ready, handled) == seconds
