"""Read-only pages of the admin: the queues, and the dead letters of one queue."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from ..databases import DatabaseError, QueueError, applications
from .models import Queue
from .settings import connection

DEAD = 50  # dead letters on a page
BODY = 500  # characters


@admin.register(Queue)
class QueueAdmin(admin.ModelAdmin):
    """Lists queues and dead letters. `runner web` and `runner top` change them."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        type = request.GET.get("type")
        context = {
            **self.admin_site.each_context(request),
            "title": f"Dead letters of {type}" if type else "Queues",
            "opts": self.opts,
            "type": type,
            "most": DEAD,
        }
        if type:
            context["errors"] = _rows(request, "list_errors", type, DEAD)
            context["dead"] = _rows(request, "peek", type, "E", DEAD, BODY)
        else:
            context["queues"] = _rows(request, "queue_stats", None)
        return TemplateResponse(request, "admin/rowqueue/queues.html", context)


def _rows(request: HttpRequest, procedure: str, *arguments: Any) -> list[dict[str, Any]]:
    """The rows of a call; none and a message if it fails, such as without the right to call it."""
    try:
        with transaction.atomic(using=connection().alias):
            return applications.call(connection(), procedure, arguments)
    except (DatabaseError, QueueError) as error:
        messages.error(request, str(error))
        return []
