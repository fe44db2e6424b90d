"""rowqueue.django, in the project of examples/django: real migrations, tests, commands, tasks and pages.

With the Django of the tests' own environment, and with Django 6 in an environment of its own.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import django
import pytest
from rowqueue.databases import Database, open_database
from rowqueue.databases.mysql import address
from rowqueue.databases.url import join
from servers import Server
from support import pythons
from support.processes import Running, environment
from support.waiting import until

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "django"
# The first test with Django 6 waits for its environment, which a busy machine makes in minutes.
pytestmark = [pytest.mark.product("postgresql", "mysql"), pytest.mark.timeout(900)]

Manage = Callable[..., subprocess.CompletedProcess[str]]


def settings(url: str) -> dict[str, str]:
    """The environment that examples/django/shop/settings.py reads."""
    parts = urlsplit(url)
    engine = "postgresql" if url.startswith("postgresql") else "mysql"
    query = dict(parse_qsl(parts.query))
    return {
        "SHOP_ENGINE": f"django.db.backends.{engine}",
        "SHOP_NAME": unquote(parts.path[1:]),
        "SHOP_USER": unquote(parts.username or ""),
        "SHOP_PASSWORD": unquote(parts.password or ""),
        "SHOP_HOST": query.get("unix_socket") or query.get("host") or parts.hostname or "",
        "SHOP_PORT": str(parts.port or ""),
    }


@pytest.fixture(scope="session", params=["own", pytest.param("django-6", marks=pytest.mark.level(3))])
def python(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> str:
    """The interpreter that has Django. A missing Python is no missing database, so it never fails a test."""
    if request.param == "own":
        return sys.executable
    if django.VERSION >= (6,):
        pytest.skip(f"Django {django.__version__} is in the tests' own environment")
    try:
        return pythons.with_django_6()
    except pythons.Missing as error:
        pytest.skip(str(error))
    except pythons.Broken as error:
        if pytestconfig.getoption("--require-databases"):
            raise
        pytest.skip(str(error))


def command(python: str, *arguments: object) -> list[str]:
    return [python, "manage.py", *map(str, arguments)]


@pytest.fixture
def manage(python: str) -> Manage:
    """Runs manage.py: manage(url, "migrate")."""

    def run(url: str, *arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
        variables = environment(None, **settings(url), **more)
        return subprocess.run(
            command(python, *arguments), capture_output=True, text=True, env=variables, cwd=PROJECT, timeout=120
        )

    return run


@pytest.fixture
def project(empty_database: Database, manage: Manage) -> Database:
    """A database after `manage.py migrate`."""
    done = manage(empty_database.url, "migrate")
    assert done.returncode == 0, done.stderr
    return empty_database


def shell(manage: Manage, database: Database, program: str) -> list[str]:
    """The lines that a program in the project prints."""
    done = manage(database.url, "shell", "-v", "0", "-c", program)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_migrate_installs_the_queue_once_and_the_projects_tests_pass(
    project: Database, manage: Manage, server: Server
) -> None:
    with closing(project.connect("test")) as session:
        assert session.call("queue_stats") == []
        session.call("send", "kept", "x")
    again = manage(project.url, "migrate")
    assert again.returncode == 0 and "upgraded" not in again.stdout, again.stderr
    assert manage(project.url, "makemigrations", "--check").returncode == 0
    tested = manage(project.url, "test", "--noinput")
    assert tested.returncode == 0, tested.stderr
    assert "Ran 3 tests" in tested.stderr
    server.drop_procedure(project.url, "peek")
    mended = manage(project.url, "migrate")
    assert mended.returncode == 0 and "The queue was upgraded" in mended.stdout, mended.stderr
    back = manage(project.url, "migrate", "rowqueue", "zero")
    assert back.returncode == 0, back.stderr
    with closing(project.connect("test")) as session:
        assert session.call("peek", "kept")[0]["body"] == "x", "migrating backwards loses no message"


def test_a_message_belongs_to_the_transaction_and_a_consumer_uses_the_models(project: Database, manage: Manage) -> None:
    shell(
        manage,
        project,
        "from shop.jobs import place_order\n"
        "place_order('ada@example.org')\n"
        "from django.db import transaction\n"
        "try:\n"
        "    with transaction.atomic():\n"
        "        place_order('alan@example.org')\n"
        "        raise ValueError\n"
        "except ValueError: pass\n",
    )
    done = manage(project.url, "rowqueue", "consume", "--type", "email", "--handler", "shop.jobs:send_mail", "--drain")
    assert done.returncode == 0 and "1 completed" in done.stderr, done.stderr
    program = "from shop.models import Order\nprint(list(Order.objects.values_list('customer', 'mailed')))"
    assert shell(manage, project, program) == ["[('ada@example.org', 1)]"]
    failed = manage(project.url, "rowqueue", "consume", "--type", "email", "--handler", "shop.jobs:none")
    assert failed.returncode == 2 and "none" in failed.stderr, "the runner's own exit codes and errors"


@pytest.mark.product("postgresql")
def test_tasks_run_later_and_keep_their_results(project: Database, manage: Manage, python: str) -> None:
    base = shell(manage, project, "from rowqueue.django.tasks import BaseTaskBackend as b\nprint(b.__module__)")
    is_old = python == sys.executable and django.VERSION < (6,)
    assert base == ["django_tasks.backends.base" if is_old else "django.tasks.backends.base"]
    ids = shell(
        manage,
        project,
        "from datetime import timedelta\n"
        "from django.utils import timezone\n"
        "from shop.jobs import count_later, count_orders, fails, place_order\n"
        "place_order('ada@example.org')\n"
        "print(count_orders.enqueue('ada@example.org').id)\n"
        "print(count_later.enqueue(customer='ada@example.org').id)\n"
        "print(fails.enqueue('no way').id)\n"
        "print(count_orders.using(run_after=timezone.now() + timedelta(hours=1)).enqueue('x').id)\n"
        "print(count_orders.using(priority=7).enqueue('urgent').id)\n",
    )
    with closing(project.connect("test")) as session:
        session.call("set_queue", "default", '{"on_complete": "archive"}')
        session.call("set_queue", "report", '{"max_attempts": 2, "backoff_seconds": 0, "backoff_max_seconds": 0}')
        first = session.call("peek", "default", None, 1)[0]
        assert (first["id"], first["priority"]) == (int(ids[4]), -7), "a greater number is more urgent in Django"
    for queue, option in (("default", "--keep-results"), ("report", "--log-level=info")):
        handler = "rowqueue.django.tasks:run"
        done = manage(project.url, "rowqueue", "consume", "--type", queue, "--handler", handler, "--drain", option)
        assert done.returncode == 0, done.stderr
    states = shell(
        manage,
        project,
        "from shop.jobs import count_later, count_orders, fails\n"
        f"for task, id in zip((count_orders, count_later, fails, count_orders), {ids}):\n"
        "    r = task.get_result(id)\n"
        "    print(r.status.value, r.args, r.kwargs, r.attempts, [e.traceback for e in r.errors])\n"
        "from rowqueue import send\nfrom django.db import connection\n"
        "for body in ('no JSON', '[]', '{\"task\": \"os.system\"}'):\n"
        "    try: count_orders.get_result(str(send(connection, 'other', body).id))\n"
        "    except Exception as error: print(type(error).__name__)\n"
        f"print(count_orders.get_result({ids[0]!r}).return_value, count_later.get_result({ids[1]!r}).return_value)\n"
        "for id in ('nonsense', '99999', '9' * 30):\n"
        "    try: count_orders.get_result(id)\n"
        "    except Exception as error: print(type(error).__name__)\n",
    )
    assert states == [
        "SUCCESSFUL ['ada@example.org'] {} 1 []",
        "SUCCESSFUL [] {'customer': 'ada@example.org'} 1 []",
        "FAILED ['no way'] {} 2 ['ValueError: no way, attempt 2']",
        "READY ['x'] {} 0 []",
        *["TaskResultDoesNotExist"] * 3,
        "1 1",
        *["TaskResultDoesNotExist"] * 3,
    ]


@pytest.mark.product("postgresql")
def test_a_message_that_is_no_task_is_a_dead_letter(project: Database, manage: Manage) -> None:
    bodies = ["no JSON", "[]", json.dumps({"task": "shop.jobs.gone", "args": [], "kwargs": {}, "backend": "default"})]
    with closing(project.connect("test")) as session:
        for body in bodies:
            session.call("send", "default", body)
        done = manage(
            *(project.url, "rowqueue", "consume", "--type", "default"),
            *("--handler", "rowqueue.django.tasks:run", "--drain"),
        )
        assert done.returncode == 0, done.stderr
        dead = session.call("peek", "default", "E")
    assert sorted(row["body"] for row in dead) == sorted(bodies)
    assert all(row["error"].startswith("not a task of this project: ") for row in dead)


@pytest.mark.product("postgresql")
def test_the_admin_shows_queues_and_dead_letters_to_those_who_may_see_them(project: Database, manage: Manage) -> None:
    with closing(project.connect("test")) as session:
        session.call("send", "<b>", "<script>alert(1)</script>")
        [claimed] = session.call("claim_batch", "<b>")
        session.call("dead_letter", claimed["id"], claimed["batch_key"], "refused: <i>")
        session.call("send", "email", "x")
    pages = shell(
        manage,
        project,
        "from django.conf import settings\n"
        "settings.ALLOWED_HOSTS = ['*']\n"
        "from django.contrib.auth.models import Permission, User\n"
        "from django.test import Client\n"
        "def page(client, path):\n"
        "    answer = client.get(path)\n"
        "    return str(answer.status_code) + ' ' + answer.content.decode().replace('\\n', ' ')\n"
        "user = User.objects.create_user('viewer', is_staff=True)\n"
        "client = Client(); client.force_login(user)\n"
        "print(page(client, '/admin/rowqueue/queue/')[:3])\n"
        "user.user_permissions.add(Permission.objects.get(codename='view_queue'))\n"
        "print(page(client, '/admin/rowqueue/queue/'))\n"
        "print(page(client, '/admin/rowqueue/queue/?type=%3Cb%3E'))\n"
        "print(page(client, '/admin/rowqueue/queue/add/')[:3])\n"
        "print(Permission.objects.filter(content_type__app_label='rowqueue').count())\n",
    )
    assert pages[0] == "403" and pages[3] == "403" and pages[4] == "1"
    assert pages[1].startswith("200") and "<td>email</td><td>1</td>" in pages[1]
    assert '<a href="?type=%3Cb%3E">1</a>' in pages[1]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in pages[2] and "refused: &lt;i&gt;" in pages[2]
    assert "<script>alert" not in pages[2]


@pytest.fixture
def consumers(python: str, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts manage.py in the background."""
    started: list[Running] = []

    def run(url: str, *arguments: object) -> Running:
        path = tmp_path / f"stderr-{len(started)}"
        with path.open("w") as stderr:
            variables = environment(None, **settings(url))
            process = subprocess.Popen(
                command(python, *arguments), stdout=stderr, stderr=stderr, env=variables, cwd=PROJECT
            )
        started.append(Running(process, path))  # type: ignore[arg-type]
        return started[-1]

    yield run
    for running in started:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()


def test_a_restart_of_the_database_costs_no_message(
    private_server: Server, manage: Manage, consumers: Callable[..., Running]
) -> None:
    """The models use Django's own connection, which the consumer's reconnecting does not touch."""
    url = private_server.create_database()
    assert manage(url, "migrate").returncode == 0
    database = open_database(url)

    def send() -> None:
        with closing(database.connect("test")) as session:
            session.call("send", "email", '{"order": 1}')

    def left() -> Any:
        with closing(database.connect("test")) as session:
            return session.call("queue_stats", "email")

    with closing(database.connect("test")) as session:
        session.call("set_queue", "email", '{"backoff_seconds": 0, "backoff_max_seconds": 1}')
    running = consumers(url, "rowqueue", "consume", "--type", "email", "--handler", "shop.jobs:send_mail")
    send()
    until(lambda: all(row["ready"] + row["active"] + row["delayed"] == 0 for row in left()))
    private_server.stop("immediate")
    private_server.start()
    for _ in range(5):
        send()
    until(lambda: all(row["ready"] + row["active"] + row["delayed"] == 0 for row in left()))
    assert all(row["dead"] == 0 for row in left())
    assert running.stop(signal.SIGTERM) == 0, running.stderr
    assert "6 completed" in running.stderr


@pytest.mark.product("postgresql")
def test_an_error_of_rights_names_the_other_way_to_install(
    empty_database: Database, server: Server, manage: Manage
) -> None:
    login = f"login_{os.urandom(6).hex()}"
    with (
        server.login(empty_database.url, login) as url,
        closing(server.client(empty_database.url)) as client,
    ):
        client.execute(f"GRANT ALL ON SCHEMA public TO {login}")
        done = manage(url, "migrate", "rowqueue")
        client.execute(f"DROP OWNED BY {login}")
    assert done.returncode != 0
    assert "manage.py rowqueue sql" in done.stderr


def test_the_url_of_the_settings_keeps_every_character() -> None:
    password = "p:/@%?#[ä"
    text = join("mysql", "::1", 3307, "a b", "me@home", password, {"unix_socket": "/run/my sql"})
    assert address.parse(text) == {
        **{"user": "me@home", "password": password, "host": "::1", "port": "3307"},
        **{"database": "a b", "unix_socket": "/run/my sql"},
    }


@pytest.mark.product("postgresql")
def test_settings_that_cannot_work_are_refused(python: str, manage: Manage, database: Database, tmp_path: Path) -> None:
    sqlite = subprocess.run(
        command(python, "rowqueue", "stats"),
        capture_output=True,
        text=True,
        env=environment(None, SHOP_ENGINE="django.db.backends.sqlite3", SHOP_NAME=str(tmp_path / "db")),
        cwd=PROJECT,
        timeout=60,
    )
    assert sqlite.returncode != 0 and "which is sqlite: name another one with" in sqlite.stderr
    program = (
        "from django.conf import settings\nsettings.ROWQUEUE = {%s}\nfrom rowqueue.django.settings import url\nurl()"
    )
    for setting, word in (("'DATABSE': 'x'", "unknown name 'DATABSE'"), ("'DATABASE': 'x'", "not in DATABASES")):
        done = manage(database.url, "shell", "-v", "0", "-c", program % setting)
        assert done.returncode != 0 and word in done.stderr, done.stderr
