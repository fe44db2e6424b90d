"""The app `rowqueue.django`."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class RowqueueConfig(AppConfig):
    """Installs the queue with `migrate`, and its later releases too."""

    name = "rowqueue.django"
    label = "rowqueue"
    verbose_name = "Queues"

    def ready(self) -> None:
        post_migrate.connect(_upgrade, sender=self)


def _upgrade(using: str, verbosity: int = 1, **_: Any) -> None:
    """After each `migrate`: a new release of rowqueue needs no migration of its own."""
    from .installing import upgrade
    from .settings import alias

    if using == alias():
        upgrade(verbosity)
