"""Responses in the shapes of the reconciliation specification."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexarium import __version__
from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.vocabulary import Vocabulary
from lexarium.services.search import reconciliation
from lexarium.services.search.properties import Entity, Property, PropertyValue, list_properties
from lexarium.services.search.reconciliation import EntityIds, ReconcileCandidate, format_description
from lexarium.services.search.record_search import LabelSuggestion
from lexarium.services.vocabularies.access import ReadScope

RECONCILE_PATH = "/reconcile"
_WIDTH, _HEIGHT = 420, 320


@dataclass(frozen=True)
class ReconcileService:
    """Service over all vocabularies that everyone may read, or over one: its path, types, properties and ids."""

    path: str
    scope: ReadScope
    # That of a service of one, else the main vocabulary.
    vocabulary: Vocabulary
    is_local: bool = False

    @property
    def entity_ids(self) -> EntityIds:
        """Identifiers of records."""
        return EntityIds(self.scope, self.vocabulary.slug if self.is_local else None)

    @property
    def collections(self) -> tuple[Collection, ...]:
        """Collections, which are types."""
        return tuple(COLLECTIONS[name] for name in self.scope.collections)

    @property
    def properties(self) -> dict[str, Property]:
        """Properties by id."""
        return list_properties(self.collections)

    def get_type_id(self, collection: Collection) -> str:
        """Return the id of a type: the name in the vocabulary, with that before it in a service of all."""
        return collection.local_name if self.is_local else collection.name

    def find_types(self, type_id: str) -> tuple[str, ...]:
        """Return the unique name of the collection that a type is, or nothing."""
        return tuple(item.name for item in self.collections if self.get_type_id(item) == type_id)

    def serialize_types(self) -> dict[str, dict[str, str]]:
        """Return all types by id."""
        return {
            self.get_type_id(item): {**self.serialize_type(item), "description": item.description}
            for item in self.collections
        }

    def serialize_properties(self) -> dict[str, dict[str, str]]:
        """Return all properties by id."""
        return {
            prop.id: {"id": prop.id, "name": prop.name, "description": prop.description}
            for prop in self.properties.values()
        }

    def serialize_type(self, collection: Collection) -> dict[str, str]:
        """Return a reference to a type."""
        name = collection.local_name.replace("_", " ")
        is_other = not self.is_local and collection.vocabulary != MAIN_VOCABULARY
        return {"id": self.get_type_id(collection), "name": f"{name} ({collection.vocabulary})" if is_other else name}


def build_manifest(service: ReconcileService, base_url: str) -> dict[str, Any]:
    """Return the manifest: URLs at the requested base, identifiers as the IRIs of records."""
    types = service.serialize_types()
    is_other = service.vocabulary.slug != MAIN_VOCABULARY
    view_query = f"?vocabulary={service.vocabulary.slug}" if is_other else ""
    return {
        "versions": ["0.2"],
        "name": service.vocabulary.title,
        "identifierSpace": get_base_iri(service.vocabulary, base_url),
        "schemaSpace": "http://www.w3.org/2004/02/skos/core#Concept",
        "serviceVersion": __version__,
        "documentation": f"{base_url}/docs",
        "defaultTypes": [types[service.get_type_id(COLLECTIONS[name])] for name in service.scope.searched_collections],
        "view": {"url": f"{base_url}/id/{{{{id}}}}{view_query}"},
        "preview": {"url": f"{base_url}{service.path}/preview?id={{{{id}}}}", "width": _WIDTH, "height": _HEIGHT},
        "suggest": {
            entity_type: {
                "service_url": base_url,
                "service_path": f"{service.path}/suggest/{entity_type}",
                "flyout_service_url": base_url,
                "flyout_service_path": f"{service.path}/flyout/{entity_type}?id=${{id}}",
            }
            for entity_type in ("entity", "type", "property")
        },
        "extend": {
            "propose_properties": {"service_url": base_url, "service_path": f"{service.path}/properties"},
            "property_settings": [],
        },
        "batchSize": reconciliation.MAX_BATCH_QUERIES,
    }


def get_base_iri(vocabulary: Vocabulary, base_url: str) -> str:
    """Return where the IRIs of records begin: at the base of the vocabulary, or at the requested address."""
    return f"{vocabulary.base if vocabulary.has_base else f'{base_url}/'}id/"


def serialize_candidate(service: ReconcileService, candidate: ReconcileCandidate) -> dict[str, Any]:
    """Return a candidate with its scores."""
    features = {"label": candidate.label_score, **candidate.property_scores}
    record = candidate.entity.record
    return {
        "id": service.entity_ids.format(record.id, record.iri),
        "name": candidate.entity.name,
        "description": format_description(candidate.entity, candidate.matched_alias),
        "type": [service.serialize_type(record.collection)],
        "score": candidate.score,
        "match": candidate.match,
        "features": [{"id": name, "value": value} for name, value in features.items()],
    }


def serialize_completion(service: ReconcileService, suggestion: LabelSuggestion, entity: Entity) -> dict[str, Any]:
    """Return a suggested record."""
    labels = {alias.text for alias in entity.record.aliases}
    matched_alias = suggestion.text if suggestion.text in labels and suggestion.text != suggestion.name else ""
    return {
        "id": service.entity_ids.format(suggestion.id, entity.record.iri),
        "name": suggestion.name,
        "description": format_description(entity, matched_alias),
        "notable": [service.serialize_type(entity.record.collection)],
    }


def serialize_extension(
    service: ReconcileService,
    rows: Mapping[str, Mapping[str, Sequence[PropertyValue]]],
    columns: Sequence[Property],
) -> dict[str, Any]:
    """Return the values of properties, by record."""
    return {
        "meta": [
            {
                "id": prop.id,
                "name": prop.name,
                **({"type": service.serialize_type(COLLECTIONS[prop.targets[0]])} if len(prop.targets) == 1 else {}),
            }
            for prop in columns
        ],
        "rows": {
            record_id: {name: [_serialize_value(value) for value in values] for name, values in row.items()}
            for record_id, row in rows.items()
        },
    }


def _serialize_value(value: PropertyValue) -> dict[str, str]:
    return {"str": value.text} if value.id is None else {"id": value.id, "name": value.text}
