"""What a sender's trace leaves in the headers of its message."""

import json

from opentelemetry.sdk.trace import TracerProvider
from rowqueue.tracing import injected


def test_current_span_goes_into_headers_that_can_carry_it() -> None:
    with TracerProvider().get_tracer("test").start_as_current_span("send") as span:
        trace = format(span.get_span_context().trace_id, "032x")
        assert json.loads(injected(None) or "")["traceparent"].split("-")[1] == trace
        headers = json.loads(injected('{"mine": 1}') or "")
        assert headers["mine"] == 1
        assert headers["traceparent"].split("-")[1] == trace
        assert injected("not JSON") == "not JSON"
        assert injected("[1]") == "[1]"


def test_without_a_span_headers_stay_as_they_are() -> None:
    assert injected(None) is None
    assert injected('{"mine": 1}') == '{"mine": 1}'
