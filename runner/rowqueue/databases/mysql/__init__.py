"""MySQL and MariaDB through PyMySQL. Everything the runner knows of these servers stands in this package."""

from .database import MySQL
from .session import MySQLSession

__all__ = ["DATABASE", "MySQL", "MySQLSession"]

DATABASE = MySQL
