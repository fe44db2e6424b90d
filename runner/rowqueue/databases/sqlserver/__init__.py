"""SQL Server and Azure SQL through pymssql. Everything the runner knows of these servers stands in this package."""

from .database import SQLServer
from .session import SQLServerSession

__all__ = ["DATABASE", "SQLServer", "SQLServerSession"]

DATABASE = SQLServer
