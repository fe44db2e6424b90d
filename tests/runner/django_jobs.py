"""A handler that uses a connection of Django, as an application's models do."""

import os

import django
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection
from jobs import note
from psycopg.conninfo import conninfo_to_dict
from rowqueue import Message

_NAMES = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
_found = {_NAMES[key]: value for key, value in conninfo_to_dict(os.environ["RUNNER_DATABASE"]).items() if key in _NAMES}
settings.configure(DATABASES={"default": _found | {"ENGINE": "django.db.backends.postgresql", "CONN_MAX_AGE": 600}})
django.setup()


def ask(message: Message) -> None:
    note(message.body)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


async def ask_async(message: Message) -> None:
    await sync_to_async(ask)(message)


def ask_list(messages: list[Message]) -> None:
    for message in messages:
        ask(message)
