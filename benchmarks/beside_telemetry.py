"""The same handler in a process that has imported OpenTelemetry's API but no SDK."""

import opentelemetry.metrics
import opentelemetry.trace
from handlers import each

__all__ = ["each", "opentelemetry"]
