"""Handlers in processes of their own: --exec and --worker."""
