"""MySQL and MariaDB, through PyMySQL."""

from .database import MySQL
from .session import MySQLSession

__all__ = ["DATABASE", "MySQL", "MySQLSession"]

DATABASE = MySQL
