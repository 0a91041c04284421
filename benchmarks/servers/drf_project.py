"""Django project that serves concepts like the public Cognitive Atlas site.

That site has one view per collection, passes rows as dictionaries to the framework's `Response` without a
serializer, and returns the whole collection as an array, or one record for `?id=`. The project runs in the peers'
environment, with the settings in `drf_settings.py`.
"""

# Django is not installed where this repository is type-checked.
# mypy: ignore-errors

import django
from django.core.wsgi import get_wsgi_application
from django.db import models
from django.urls import path
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

# Models can only be declared after Django has read its settings.
django.setup()


class Concept(models.Model):
    """Record in the table that `concept_table.py` writes."""

    id = models.TextField(primary_key=True)
    name = models.TextField()
    alias = models.TextField()
    definition_text = models.TextField()
    id_concept_class = models.TextField()
    id_user = models.TextField()
    event_stamp = models.TextField()
    def_id = models.TextField()
    def_id_user = models.TextField()
    def_event_stamp = models.TextField()
    creation_time = models.BigIntegerField()
    last_updated = models.BigIntegerField()

    class Meta:
        """The table exists already and is not managed by Django."""

        app_label = "benchmark"
        db_table = "concept"
        managed = False


class ConceptView(APIView):
    """`GET`: all concepts by name, or the one named by `?id=`."""

    def get(self, request: Request) -> Response:
        concepts = Concept.objects.values()
        concept_id = request.GET.get("id")
        if not concept_id:
            return Response(list(concepts.order_by("name")))
        concept = concepts.filter(id=concept_id).first()
        if concept is None:
            raise NotFound("Concept not found")
        return Response(concept)


urlpatterns = [path("api/v-alpha/concept", ConceptView.as_view())]
application = get_wsgi_application()
