"""Orders."""

from django.db import models


class Order(models.Model):
    """What somebody has ordered, and whether the mail about it was sent."""

    customer = models.EmailField()
    mailed = models.IntegerField(default=0)
