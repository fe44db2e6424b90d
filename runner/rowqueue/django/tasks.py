"""A backend for Django's tasks: `django.tasks` of Django 6, or the package django-tasks on Django 5.2.

TASKS = {"default": {"BACKEND": "rowqueue.django.tasks.RowqueueBackend", "QUEUES": ["default", "email"]}}

A task is sent as a message of the queue with its queue_name, in the transaction that enqueues it: it runs if that
commits. `manage.py rowqueue consume --type default --handler rowqueue.django.tasks:run` runs tasks. A task that raises
is retried as the queue's policy says, or as OPTIONS["max_attempts"] does; then it has failed, and is a dead letter.
"""

import json
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from ..calling import get_result, send
from ..consume import process_name
from ..databases import QueueError, applications
from ..messages import DeadLetter, Message
from .settings import connection

try:
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import TaskContext, TaskError, TaskResult, TaskResultStatus
    from django.tasks.exceptions import TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
except ModuleNotFoundError:
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import TaskContext, TaskError, TaskResult, TaskResultStatus
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued, task_finished, task_started

_OPTIONS = {"max_attempts"}
_STATUS = {
    "N": TaskResultStatus.READY,
    "A": TaskResultStatus.RUNNING,
    "E": TaskResultStatus.FAILED,
    "C": TaskResultStatus.SUCCESSFUL,
}


class RowqueueBackend(BaseTaskBackend):
    """Sends tasks as messages. Results are kept in queues that archive, if the consumer has --keep-results."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        if unknown := self.options.keys() - _OPTIONS:
            raise ValueError(f"OPTIONS: unknown name {min(unknown)!r}; known: {', '.join(sorted(_OPTIONS))}")

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Send a task in the transaction of the project's connection."""
        self.validate_task(task)
        result = self._result(task, "", args, kwargs)
        body = {"task": task.module_path, "args": result.args, "kwargs": result.kwargs, "backend": self.alias}
        if task.priority:
            body["priority"] = task.priority
        sent = send(
            connection(),
            task.queue_name,
            json.dumps(body, ensure_ascii=False),
            run_at=_aware(task.run_after),
            priority=-task.priority,  # a greater number is more urgent in Django
            max_attempts=self.options.get("max_attempts"),
            source=f"django.tasks {self.alias}",
        )
        _set(result, id=str(sent.id), enqueued_at=timezone.now())
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> Any:
        """The state of a task, and its result if the queue archives. Raises TaskResultDoesNotExist.

        A queue that does not archive forgets a task when it has succeeded. The database's user needs the role
        mq_operator, to read messages.
        """
        kept = None
        with suppress(ValueError, QueueError), transaction.atomic(using=connection().alias):
            id = int(result_id)
            rows = applications.call(connection(), "find_messages", (None, json.dumps({"id": id}), 1, None))
            kept = get_result(connection(), id) if rows else None
        if kept is None:
            raise TaskResultDoesNotExist(result_id)
        [row] = rows
        try:
            body = json.loads(row["body"])
            task = _task(body)
        except Exception as error:  # another message, or the function of the task is gone
            raise TaskResultDoesNotExist(result_id) from error
        result = self._result(task, str(row["id"]), body["args"], body["kwargs"])
        value = json.loads(kept.result) if kept.result else {}
        began = datetime.fromisoformat(value["started_at"]) if "started_at" in value else None
        finished = row["changed_at"] if row["state"] in ("C", "E") else None
        result.worker_ids.extend([row["consumer"] or ""] * row["attempts"])
        if kept.error:
            result.errors.append(TaskError(exception_class_path=_class_of(kept.error), traceback=kept.error))
        _set(
            result,
            status=_STATUS.get(row["state"], TaskResultStatus.READY),
            enqueued_at=row["created_at"],
            started_at=began,
            last_attempted_at=row["changed_at"] if row["state"] == "A" else began,
            finished_at=finished,
            _return_value=value.get("return_value"),
        )
        return result

    def _result(self, task: Any, id: str, args: Any, kwargs: Any) -> Any:
        return TaskResult(
            task=task,
            id=id,
            status=TaskResultStatus.READY,
            enqueued_at=None,
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            args=list(args),
            kwargs=dict(kwargs),
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )


def run(message: Message) -> dict[str, Any]:
    """The handler of tasks. What it returns is the result that --keep-results stores."""
    try:
        body = json.loads(message.body)
        task = _task(body)
        args, kwargs = body["args"], body["kwargs"]
    except Exception as error:  # it was not sent by this backend, or its function is gone
        raise DeadLetter(f"not a task of this project: {type(error).__name__}: {error}") from error
    backend = task.get_backend()
    result = backend._result(task, str(message.id), args, kwargs)
    began = timezone.now()
    result.worker_ids.extend([process_name()] * message.attempt)
    _set(result, status=TaskResultStatus.RUNNING, enqueued_at=message.created_at, started_at=began)
    _set(result, last_attempted_at=began)
    task_started.send(type(backend), task_result=result)
    try:
        value = task.call(*([TaskContext(task_result=result)] if task.takes_context else []), *args, **kwargs)
        kept = json.loads(json.dumps({"return_value": value, "started_at": began.isoformat()}))
    except BaseException as error:
        if message.attempt >= message.max_attempts:
            result.errors.append(TaskError(exception_class_path=_path(type(error)), traceback=str(error)))
            _set(result, status=TaskResultStatus.FAILED, finished_at=timezone.now())
            task_finished.send(type(backend), task_result=result)
        raise
    _set(result, status=TaskResultStatus.SUCCESSFUL, finished_at=timezone.now(), _return_value=value)
    task_finished.send(type(backend), task_result=result)
    return kept  # type: ignore[no-any-return]


def _task(body: dict[str, Any]) -> Any:
    """The task of a message. Its path is that of the function, whose name is bound to the task."""
    task = import_string(body["task"])
    return task.using(backend=body["backend"], priority=body.get("priority", 0))


def _set(result: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(result, name, value)  # a frozen dataclass, which Django's own backends set in this way


def _aware(moment: datetime | None) -> datetime | None:
    return moment if moment is None or timezone.is_aware(moment) else timezone.make_aware(moment)


def _path(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _class_of(error: str) -> str:
    """The class of a recorded error, `ValueError: …`: only the name is recorded, so other modules are not known."""
    import builtins

    kind = getattr(builtins, error.partition(":")[0], None)
    return _path(kind if isinstance(kind, type) and issubclass(kind, BaseException) else Exception)
