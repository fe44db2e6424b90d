"""What is done later: handlers of messages, and tasks."""

import json

import rowqueue
from django.db import connection, transaction
from django.db.models import F

from shop.models import Order

try:
    from django.tasks import task
except ImportError:  # Django 5.2 with the package django-tasks
    from django_tasks import task


def place_order(customer: str) -> Order:
    """Save an order and send the message about it, both or neither."""
    with transaction.atomic():
        order = Order.objects.create(customer=customer)
        rowqueue.send(connection, "email", json.dumps({"order": order.id}))
    return order


def send_mail(message: rowqueue.Message) -> None:
    """The handler: manage.py rowqueue consume --type email --handler shop.jobs:send_mail."""
    Order.objects.filter(id=json.loads(message.body)["order"]).update(mailed=F("mailed") + 1)


@task()
def count_orders(customer: str) -> int:
    """A task: manage.py rowqueue consume --type default --handler rowqueue.django.tasks:run --keep-results."""
    return Order.objects.filter(customer=customer).count()


@task(queue_name="report", takes_context=True)
def fails(context, reason: str) -> None:
    """A task that never succeeds."""
    raise ValueError(f"{reason}, attempt {context.attempt}")


@task()
async def count_later(customer: str) -> int:
    """An async task."""
    return await Order.objects.filter(customer=customer).acount()
