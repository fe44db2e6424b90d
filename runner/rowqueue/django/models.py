"""Models without tables: they give the admin its pages and the permission to see them."""

from django.db import models


class Queue(models.Model):
    """A queue, as queue_stats lists it."""

    type = models.CharField(max_length=200, primary_key=True)

    class Meta:
        managed = False
        default_permissions = ("view",)
        verbose_name_plural = "queues"

    def __str__(self) -> str:
        return str(self.type)
