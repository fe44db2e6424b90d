"""What is installed in a database: the contract, the SQL files, and how they are applied."""
