"""Settings of `drf_project.py`; BENCHMARK_DATABASE is the path of the database."""

import os

ALLOWED_HOSTS = ["127.0.0.1"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["BENCHMARK_DATABASE"]}}
INSTALLED_APPS = ["rest_framework"]
MIDDLEWARE = [
    # The public site does not use it, but without it there would be no 304 to measure.
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
