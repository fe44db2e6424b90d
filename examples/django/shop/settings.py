"""Settings of a small shop. The database is named by the environment."""

import os
from importlib.util import find_spec

SECRET_KEY = "only for this example"
USE_TZ = True
ROOT_URLCONF = "shop.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "rowqueue.django",
    "shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {
    "default": {
        "ENGINE": os.environ.get("SHOP_ENGINE", "django.db.backends.postgresql"),
        "NAME": os.environ.get("SHOP_NAME", "shop"),
        "USER": os.environ.get("SHOP_USER", ""),
        "PASSWORD": os.environ.get("SHOP_PASSWORD", ""),
        "HOST": os.environ.get("SHOP_HOST", ""),
        "PORT": os.environ.get("SHOP_PORT", ""),
        "CONN_MAX_AGE": 600,
    }
}
TASKS = {"default": {"BACKEND": "rowqueue.django.tasks.RowqueueBackend", "QUEUES": ["default", "report"]}}
if os.environ.get("SHOP_ENGINE", "").endswith("mysql") and find_spec("MySQLdb") is None:
    import pymysql

    pymysql.install_as_MySQLdb()  # mysqlclient has to be compiled
