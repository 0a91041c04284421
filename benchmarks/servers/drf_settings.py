"""Settings of the Django project in `drf_project.py`; the database's path comes in BENCHMARK_DATABASE."""

import os

ALLOWED_HOSTS = ["127.0.0.1"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["BENCHMARK_DATABASE"]}}
INSTALLED_APPS = ["rest_framework"]
MIDDLEWARE = [
    # Not the public site's: without it there would be no 304 to measure.
    "django.middleware.http.ConditionalGetMiddleware",
    "django.middleware.common.CommonMiddleware",
]
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "UNAUTHENTICATED_USER": None,
}
ROOT_URLCONF = "drf_project"
SECRET_KEY = os.urandom(32).hex()
USE_TZ = False
