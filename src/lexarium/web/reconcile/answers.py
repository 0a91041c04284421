"""The answers, in the shapes that the specification gives them."""

from collections.abc import Mapping, Sequence
from typing import Any

from lexarium import __version__
from lexarium.domain.about import About
from lexarium.domain.collections import COLLECTIONS, SEARCHED
from lexarium.service.properties import Property, Value
from lexarium.service.reconciling import BATCH_SIZE, Candidate, Completion, description

PATH = "/reconcile"
_WIDTH, _HEIGHT = 420, 320


def manifest(about: About, base: str) -> dict[str, Any]:
    """What the service offers, and where: at the address that it was asked at, of records with the IRIs they have."""
    return {
        "versions": ["0.2"],
        "name": about.title,
        "identifierSpace": about.iri(""),
        "schemaSpace": "http://www.w3.org/2004/02/skos/core#Concept",
        "serviceVersion": __version__,
        "documentation": f"{base}/docs",
        "defaultTypes": [type_view(name) for name in SEARCHED],
        "view": {"url": f"{base}/id/{{{{id}}}}"},
        "preview": {"url": f"{base}{PATH}/preview?id={{{{id}}}}", "width": _WIDTH, "height": _HEIGHT},
        "suggest": {
            kind: {
                "service_url": base,
                "service_path": f"{PATH}/suggest/{kind}",
                "flyout_service_url": base,
                "flyout_service_path": f"{PATH}/flyout/{kind}?id=${{id}}",
            }
            for kind in ("entity", "type", "property")
        },
        "extend": {
            "propose_properties": {"service_url": base, "service_path": f"{PATH}/properties"},
            "property_settings": [],
        },
        "batchSize": BATCH_SIZE,
    }


def type_view(name: str) -> dict[str, str]:
    """A collection as a type."""
    return {"id": name, "name": name.replace("_", " "), "description": COLLECTIONS[name].description}


def property_view(each: Property) -> dict[str, str]:
    """A property."""
    return {"id": each.id, "name": each.name, "description": each.description}


def candidate_view(candidate: Candidate) -> dict[str, Any]:
    """A candidate."""
    features = {"label": candidate.label, **candidate.fits}
    return {
        "id": candidate.entity.whole.id,
        "name": candidate.entity.name,
        "description": description(candidate.entity, candidate.also),
        "type": [_short(candidate.entity.whole.collection.name)],
        "score": candidate.score,
        "match": candidate.match,
        "features": [{"id": name, "value": value} for name, value in features.items()],
    }


def completion_view(completion: Completion) -> dict[str, Any]:
    """A record that someone who types may mean."""
    suggestion, entity = completion.suggestion, completion.entity
    labels = {alias.text for alias in entity.whole.alias_list}
    also = suggestion.text if suggestion.text in labels and suggestion.text != suggestion.name else ""
    return {
        "id": suggestion.id,
        "name": suggestion.name,
        "description": description(entity, also),
        "notable": [_short(suggestion.collection)],
    }


def extension_view(rows: Mapping[str, Mapping[str, Sequence[Value]]], wanted: Sequence[Property]) -> dict[str, Any]:
    """The values of properties."""
    return {
        "meta": [_column(each) for each in wanted],
        "rows": {
            identifier: {name: [_value(value) for value in values] for name, values in row.items()}
            for identifier, row in rows.items()
        },
    }


def _short(name: str) -> dict[str, str]:
    return {"id": name, "name": name.replace("_", " ")}


def _column(each: Property) -> dict[str, Any]:
    column: dict[str, Any] = {"id": each.id, "name": each.name}
    return column if each.target is None else {**column, "type": _short(each.target)}


def _value(value: Value) -> dict[str, str]:
    return {"str": value.text} if value.id is None else {"id": value.id, "name": value.text}
