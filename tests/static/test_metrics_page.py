"""docs/operate/metrics.md lists every metric with its kind and labels, and no other."""

import re
from pathlib import Path

from opentelemetry.semconv._incubating.metrics import messaging_metrics
from rowqueue.extras import tracing
from rowqueue.extras.health import Metrics
from rowqueue.extras.monitor.figures import METRICS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operate" / "metrics.md").read_text("utf-8")


def rows() -> dict[str, tuple[str, list[str]]]:
    """The page's tables of metrics for Prometheus: the kind and the labels of each name."""
    found = re.findall(r"^\| `(rowqueue_\w+)` \| (\w+) \| ([^|]*)\|", PAGE, re.M)
    return {name: (kind, re.findall(r"`(\w+)`", labels)) for name, kind, labels in found}


def test_the_page_lists_every_metric_of_the_exporter_and_of_a_consumer() -> None:
    expected = {
        metric.name: ("counter" if metric.name.endswith("_total") else "gauge", list(metric.labels))
        for metric in METRICS
    }
    consumer = Metrics(0)
    for metric in (
        consumer.messages,
        consumer.seconds,
        consumer.sizes,
        consumer.active,
        consumer.reconnects,
        consumer.lost_leases,
    ):
        [family] = metric.describe()
        name = f"{family.name}_total" if family.type == "counter" else family.name
        expected[name] = (family.type, list(metric._labelnames))
    assert rows() == expected


def test_no_page_names_a_metric_that_does_not_exist() -> None:
    for page in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/monitoring/*")):
        used = set(re.findall(r"\browqueue_\w+_(?:total|seconds|messages|rows|positions)\b", page.read_text("utf-8")))
        assert used <= rows().keys(), page


def test_the_page_lists_the_opentelemetry_metrics_and_the_conventions_have_them() -> None:
    source = Path(tracing.__file__).read_text("utf-8")
    made = set(re.findall(r'"(messaging\.(?:client|process)\.[\w.]+)"', source))
    assert made == set(re.findall(r"^\| `(messaging\.[\w.]+)`", PAGE, re.M))
    assert made <= {value for value in vars(messaging_metrics).values() if isinstance(value, str)}
