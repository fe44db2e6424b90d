"""The same handler in a process that has loaded OpenTelemetry's API, and no SDK."""

import opentelemetry.metrics
import opentelemetry.trace
from handlers import each

__all__ = ["each", "opentelemetry"]
