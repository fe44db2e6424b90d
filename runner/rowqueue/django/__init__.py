"""rowqueue in a Django project: `"rowqueue.django"` in INSTALLED_APPS.

`migrate` installs the queue in the project's database, also in that of the tests. `manage.py rowqueue` is the runner
with that database: `manage.py rowqueue consume --type email --handler shop.jobs:send`. `rowqueue.django.tasks` is a
backend for Django's tasks, and `rowqueue.django.testing` helps in tests. docs/start/django.md explains all of it.

The setting ROWQUEUE is a dict: DATABASE, the alias of the database (default: "default"); URL, the URL of that database
for the runner, if it cannot be made from DATABASES.
"""
