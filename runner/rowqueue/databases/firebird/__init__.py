"""Firebird 3.0 and later, through firebird-driver."""

from .database import Firebird
from .session import FirebirdSession

__all__ = ["DATABASE", "Firebird", "FirebirdSession"]

DATABASE = Firebird
