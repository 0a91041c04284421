"""A whole Django project: the concepts of the read interface, as the public Cognitive Atlas site serves them.

That site answers with one view a collection, rows handed to the framework's `Response` as dictionaries with
no serializer between, the whole collection in one array and `?id=` for one record. It runs in the peers' own
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

# A model can only be declared once Django has read its settings.
django.setup()


class Concept(models.Model):
    """A term record, in the table that `table.py` writes."""

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
        """The table is there already: Django neither makes nor changes it."""

        app_label = "benchmark"
        db_table = "concept"
        managed = False


class ConceptView(APIView):
    """`GET`: every concept by name, or the one that `?id=` names."""

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
