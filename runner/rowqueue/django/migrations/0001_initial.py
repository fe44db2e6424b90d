"""Installs the queue. The models only give the admin its pages and permissions; they have no tables."""

from django.db import migrations, models

from rowqueue.django.installing import InstallQueue


class Migration(migrations.Migration):
    atomic = False
    initial = True
    operations = [  # noqa: RUF012  (as Django writes it)
        InstallQueue(),
        migrations.CreateModel(
            name="Queue",
            fields=[("type", models.CharField(max_length=200, primary_key=True, serialize=False))],
            options={"managed": False, "default_permissions": ("view",), "verbose_name_plural": "queues"},
        ),
    ]
