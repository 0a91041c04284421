"""Responses in the shapes of the reconciliation specification."""

from collections.abc import Mapping, Sequence
from typing import Any

from lexarium import __version__
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import Vocabulary
from lexarium.services.search import properties, reconciliation
from lexarium.services.search.properties import Entity, Property, PropertyValue
from lexarium.services.search.reconciliation import ReconcileCandidate, format_description
from lexarium.services.search.record_search import LabelSuggestion

RECONCILE_PATH = "/reconcile"
# Collections as types, and properties, by id.
TYPES = {
    name: {"id": name, "name": name.replace("_", " "), "description": collection.description}
    for name, collection in COLLECTIONS.items()
}
PROPERTIES = {
    prop.id: {"id": prop.id, "name": prop.name, "description": prop.description}
    for prop in properties.PROPERTIES.values()
}
_WIDTH, _HEIGHT = 420, 320


def build_manifest(vocabulary: Vocabulary, base_url: str) -> dict[str, Any]:
    """Return the manifest: URLs at the requested base, identifiers as the IRIs of records."""
    return {
        "versions": ["0.2"],
        "name": vocabulary.title,
        "identifierSpace": vocabulary.record_iri(""),
        "schemaSpace": "http://www.w3.org/2004/02/skos/core#Concept",
        "serviceVersion": __version__,
        "documentation": f"{base_url}/docs",
        "defaultTypes": [TYPES[name] for name in COLLECTIONS.searched],
        "view": {"url": f"{base_url}/id/{{{{id}}}}"},
        "preview": {"url": f"{base_url}{RECONCILE_PATH}/preview?id={{{{id}}}}", "width": _WIDTH, "height": _HEIGHT},
        "suggest": {
            entity_type: {
                "service_url": base_url,
                "service_path": f"{RECONCILE_PATH}/suggest/{entity_type}",
                "flyout_service_url": base_url,
                "flyout_service_path": f"{RECONCILE_PATH}/flyout/{entity_type}?id=${{id}}",
            }
            for entity_type in ("entity", "type", "property")
        },
        "extend": {
            "propose_properties": {"service_url": base_url, "service_path": f"{RECONCILE_PATH}/properties"},
            "property_settings": [],
        },
        "batchSize": reconciliation.MAX_BATCH_QUERIES,
    }


def serialize_candidate(candidate: ReconcileCandidate) -> dict[str, Any]:
    """Return a candidate with its scores."""
    features = {"label": candidate.label_score, **candidate.property_scores}
    return {
        "id": candidate.entity.record.id,
        "name": candidate.entity.name,
        "description": format_description(candidate.entity, candidate.matched_alias),
        "type": [_serialize_type_ref(candidate.entity.record.collection.name)],
        "score": candidate.score,
        "match": candidate.match,
        "features": [{"id": name, "value": value} for name, value in features.items()],
    }


def serialize_completion(suggestion: LabelSuggestion, entity: Entity) -> dict[str, Any]:
    """Return a suggested record."""
    labels = {alias.text for alias in entity.record.aliases}
    matched_alias = suggestion.text if suggestion.text in labels and suggestion.text != suggestion.name else ""
    return {
        "id": suggestion.id,
        "name": suggestion.name,
        "description": format_description(entity, matched_alias),
        "notable": [_serialize_type_ref(suggestion.collection)],
    }


def serialize_extension(
    rows: Mapping[str, Mapping[str, Sequence[PropertyValue]]], columns: Sequence[Property]
) -> dict[str, Any]:
    """Return the values of properties, by record."""
    return {
        "meta": [
            {
                "id": prop.id,
                "name": prop.name,
                **({"type": _serialize_type_ref(prop.targets[0])} if len(prop.targets) == 1 else {}),
            }
            for prop in columns
        ],
        "rows": {
            record_id: {name: [_serialize_value(value) for value in values] for name, values in row.items()}
            for record_id, row in rows.items()
        },
    }


def _serialize_type_ref(name: str) -> dict[str, str]:
    return {"id": name, "name": TYPES[name]["name"]}


def _serialize_value(value: PropertyValue) -> dict[str, str]:
    return {"str": value.text} if value.id is None else {"id": value.id, "name": value.text}
