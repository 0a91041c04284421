"""Report nonconforming records of a vocabulary."""

from pydantic import Field

from lexarium.client import models
from lexarium.services.access.permissions import Permission
from lexarium.services.vocabularies.access import get_read_scope
from lexarium.services.vocabularies.conformance import check_conformance
from lexarium.store.position import Snapshot
from lexarium.web.v1.operation import Operation, Parameters, RequestContext, returns


class _BySlug(Parameters):
    slug: str = Field(description="Slug of the vocabulary.")


def read_conformance(context: RequestContext, path: _BySlug, snapshot: Snapshot) -> models.Conformance:
    """Check conformance of a vocabulary

    Checks names, hierarchy, references, values and translations. Returns exact counts and the first findings of each
    kind. Requires permission to propose changes.
    """
    [vocabulary] = get_read_scope(context.caller, [path.slug]).vocabularies
    context.caller.require(Permission.PROPOSE, vocabulary.slug)
    report = check_conformance(snapshot, vocabulary, get_read_scope(context.caller).slugs)
    return {
        "vocabulary": report.vocabulary,
        "records": report.records,
        "total": report.total,
        "items": [
            {
                "kind": group.kind,
                "title": group.title,
                "total": group.total,
                "examples": [
                    {"id": item.id, "name": item.name, "detail": item.detail, "path": item.path}
                    for item in group.examples
                ],
            }
            for group in report.groups.values()
        ],
    }


OPERATIONS = (
    Operation(
        "GET",
        "/vocabularies/{slug}/conformance",
        read_conformance,
        returns(models.Conformance),
        needs_token=True,
        errors=(403,),
    ),
)
