"""Firebird 3.0 and later through firebird-driver. All that the runner knows of this server stands in this package."""

from .database import Firebird
from .session import FirebirdSession

__all__ = ["DATABASE", "Firebird", "FirebirdSession"]

DATABASE = Firebird
