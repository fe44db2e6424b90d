"""The buttons. A change that cannot be undone is confirmed on a page of its own, which needs no JavaScript."""

from collections.abc import Callable, Mapping

from .. import monitor as seeing
from ..monitor import Change, changes, perform
from .pages import named, one_of, whole_number
from .site import BadQuery, Page, Site

Form = Mapping[str, str]

_PURGEABLE = {"N": "new", "E": "dead", "C": "archived"}


def _type(form: Form) -> str:
    return named(form, "type")


def _position(form: Form) -> int:
    text = form.get("position", "").strip()
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise BadQuery("position must be a whole number of 0 or more.")
    return int(text)


# The values of the form field `do`.
_CHANGES: dict[str, Callable[[Form], Change]] = {
    "pause": lambda form: changes.pause(_type(form)),
    "resume": lambda form: changes.resume(_type(form)),
    "redrive": lambda form: changes.redrive(whole_number(form.get("id", ""), "id")),
    "redrive_all": lambda form: changes.redrive_all(_type(form), form.get("error")),
    "cancel": lambda form: changes.cancel(whole_number(form.get("id", ""), "id")),
    "purge": lambda form: changes.purge(_type(form), one_of(form, "state", _PURGEABLE, "")),
    "run_schedule": lambda form: changes.run_schedule(named(form, "name")),
    "rewind_feed": lambda form: changes.rewind_feed(named(form, "feed"), named(form, "consumer"), _position(form)),
    "redrive_row": lambda form: changes.redrive_row(named(form, "name"), whole_number(form.get("id", ""), "id")),
    "redrive_rows": lambda form: changes.redrive_rows(named(form, "name")),
}


def change(site: Site, form: Form) -> Page | str:
    """Make a change, or ask first. Returns the page with the question, or the address to redirect to.

    Raises BadQuery, NotFound, Away, NotAllowed, QueueError.
    """
    if form.get("do") not in _CHANGES:
        raise BadQuery(f"do must be one of {', '.join(_CHANGES)}.")
    wanted = _CHANGES[form["do"]](form)
    watched = site.watched(form.get("db"))
    back = _back(site, form.get("back", ""))
    if wanted.question and form.get("sure") != "1":
        fields = {name: value for name, value in form.items() if name not in ("csrf", "sure")}
        counted = watched.ask(lambda looking: seeing.counted(looking, wanted)) if wanted.repeats else ""
        values = {"title": wanted.question, "question": wanted.question, "fields": fields, "back": back}
        values["counted"] = counted
        return Page("confirm.html", values | {"db": watched.name}, follows=False)
    said = perform(watched, wanted)
    return f"{back}{'&' if '?' in back else '?'}done={site.note(f'{watched.name}: {said}')}"


def _back(site: Site, address: str) -> str:
    """The address to go back to; always one of our own pages, without a host and line ends."""
    root = site.rules.base
    if (
        address.startswith(f"{root}/")
        and not address.startswith("//")
        and "\\" not in address
        and address.isprintable()
    ):
        return address
    return site.link("/")
