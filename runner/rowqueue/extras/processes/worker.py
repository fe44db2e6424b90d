"""Handlers in any language: processes that read messages and write answers; see docs/languages/workers.md."""

import logging
import random
import shlex
import threading
import time
from collections import deque
from collections.abc import Sequence

from ... import tracing
from ...handlers.base import GoOn, Handled, Handler, HandlerError
from ...messages import Item, Message, Retry, Snoozed, clean, text_of
from ..steps import Steps
from .conversation import Answer, Broken, Conversation, Question, reply_line

log = logging.getLogger("rowqueue")

FIRST_BACKOFF = 0.1
LONGEST_BACKOFF = 10.0
AHEAD = 0.002  # seconds: what a process answers in this time is sent at once
GROWTH = 4  # at most by this factor from one turn to the next
_LOOK = 0.1  # seconds between two checks whether to stop, while waiting for a restart


class Workers(Handler):
    """One process of the command per thread that calls `run`, started on first use and again after it ends.

    It gets a turn of messages at a time: one, or as many as it answers in AHEAD. Those that were not sent can be taken
    back. `in_order`: always one, and none after one that failed.
    """

    def __init__(self, command: str, timeout: float | None, in_order: bool = False) -> None:
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise HandlerError(f"{command!r} cannot be split into words: {error}") from None
        if not any(self._command[:1]):
            raise HandlerError("the command is empty")
        self._timeout, self._in_order = timeout, in_order
        self._slots = threading.local()
        self._has_answered = False
        self._last_end = ""  # of a process that ended before it answered
        self._running: set[Conversation] = set()

    def run(self, messages: Sequence[Item], handled: Handled, go_on: GoOn) -> None:
        slot, rest = self._slot(), deque(messages)
        while rest:
            if handled.crash or not self._is_time(go_on):
                handled.unstarted.extend(rest)
                return
            turn: list[Item] = []
            while rest and len(turn) < (1 if self._in_order else slot.turn):
                message = rest.popleft()
                (turn if go_on(message) else handled.unstarted).append(message)
            if turn:
                began = time.monotonic()
                with tracing.consuming(*turn, failures=handled.failures):
                    self._turn(turn, handled)
                slot.took(len(turn), time.monotonic() - began)

    def _slot(self) -> "_Slot":
        if not hasattr(self._slots, "own"):
            self._slots.own = _Slot()
        slot: _Slot = self._slots.own
        return slot

    def _is_time(self, go_on: GoOn) -> bool:
        """Wait until this thread's process may be started again; False when `go_on` is false before that."""
        slot = self._slot()
        while (is_wanted := go_on(None)) and (left := slot.next_start - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK))
        return is_wanted

    def _turn(self, messages: Sequence[Item], handled: Handled) -> None:
        """Send messages to this thread's process and note the outcome of each."""
        slot = self._slot()
        waiting = {message.id: message for message in messages}

        def note(answer: Answer) -> None:
            message = waiting.pop(answer.id)
            error: BaseException | None = answer.error
            if error is None:
                try:
                    if answer.snooze is not None:
                        _steps(message).snooze(answer.snooze)
                    handled.returned(message, answer.result)
                except (Exception, Snoozed) as refused:
                    error = refused
            handled.add(message, error)
            slot.deaths = 0
            self._has_answered = True

        def reply(question: Question) -> str:
            slot.asks = True
            return _reply(waiting[question.id], question)

        conversation = slot.conversation
        try:
            if conversation is not None and not conversation.is_ready():
                log.warning("a worker process ended between two batches; starting it again")
                self._running.discard(conversation)
                conversation = None
            if conversation is None:
                conversation = slot.conversation = Conversation(self._command, self._timeout)
                self._running.add(conversation)
            conversation.exchange(messages, note, reply)
        except Exception as error:  # Broken, or a system call that failed
            if conversation is not None:
                self._running.discard(conversation)
                conversation.kill()
            slot.died()
            broken = error if isinstance(error, Broken) else Broken(f"the worker: {type(error).__name__}: {error}")
            self._last_end = str(broken)
            self._blame(list(waiting.values()), handled, broken)

    def _blame(self, unanswered: list[Item], handled: Handled, broken: Broken) -> None:
        """Fail the first message without an answer; give the others back."""
        if not broken.started:
            handled.crash = HandlerError(str(broken))
        elif unanswered:
            handled.add(unanswered.pop(0), Retry(str(broken)))
        else:
            log.warning("%s", broken)
        handled.unstarted.extend(unanswered)

    def check(self) -> None:
        if self._last_end and not self._has_answered:
            raise HandlerError(f"no worker process has answered a message: {self._last_end}")

    def close(self, seconds: float = 0.0) -> None:
        until = time.monotonic() + seconds
        running = list(self._running)
        for conversation in running:
            conversation.hang_up()
        for conversation in running:
            conversation.leave(until)

    def abort(self) -> None:
        self.aborted = True
        for conversation in list(self._running):
            conversation.kill()


def _steps(item: Item) -> Steps:
    """The steps of a message. Raises HandlerError for what is none."""
    if not isinstance(item, Message):
        raise HandlerError("only messages of queues have steps and can be put back")
    steps: Steps = item.steps
    return steps


def _reply(item: Item, question: Question) -> str:
    """Do what a worker asks for, and the line that it gets."""
    try:
        if question.name == "get_steps":
            return reply_line(id=item.id, steps=_steps(item).all())
        if question.name == "get_cancelled":
            return reply_line(id=item.id, cancelled=getattr(item, "cancelled", False))
        _steps(item).save(question.step, question.value)
        return reply_line(id=item.id, saved=question.step)
    except Exception as error:
        return reply_line(id=item.id, error=clean(text_of(error)))


class _Slot:
    """A thread's process, how often it died since its last answer, when it may be started again, and its next turn."""

    def __init__(self) -> None:
        self.conversation: Conversation | None = None
        self.deaths = 0
        self.next_start = 0.0
        self.turn = 1  # messages
        self.asks = False  # it waits for replies, and must not find a message instead

    def took(self, count: int, seconds: float) -> None:
        """Note how long a turn took."""
        self.turn = 1 if self.asks else max(1, min(int(AHEAD * count / max(seconds, 1e-9)), GROWTH * count))

    def died(self) -> None:
        """Note that the process died: the wait before a restart grows each time."""
        self.conversation = None
        longest = min(FIRST_BACKOFF * 2 ** min(self.deaths, 20), LONGEST_BACKOFF)
        self.deaths += 1
        self.next_start = time.monotonic() + longest * random.uniform(0.5, 1)
