"""List, read, create and change vocabularies, and read and apply their schemas."""

from functools import partial
from typing import Any

from pydantic import BaseModel, Field
from starlette.responses import Response

from lexarium.client import models
from lexarium.domain.editing.edit import apply_merge_patch
from lexarium.domain.errors import Conflict, VersionConflict
from lexarium.domain.record import RecordState
from lexarium.domain.schema.json_schema import to_json_schema
from lexarium.domain.schema.linkml import decode_schema
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.domain.vocabulary import (
    VOCABULARIES,
    Vocabulary,
    find_valpha_vocabulary,
    get_default_vocabulary,
)
from lexarium.services.access.permissions import Permission
from lexarium.services.idempotency import WriteResponse, make_idempotent
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.vocabularies import head_records
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.http.negotiation import choose_format
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.request_body import get_media_type
from lexarium.web.http.write_requests import await_write, build_idempotency_request
from lexarium.web.request_models import PlainText, parse_model
from lexarium.web.v1.operation import (
    INVALID_BODY,
    JSON,
    Body,
    Operation,
    Parameters,
    RequestContext,
    Success,
    json_body,
    returns,
)
from lexarium.web.v1.responses import V1_PATH, OrjsonResponse, json_response

_YAML, _JSON_SCHEMA = "application/yaml", "application/schema+json"
_SCHEMA_FORMATS = {"linkml": _YAML, "json-schema": _JSON_SCHEMA, "json": JSON}
_YAML_TYPES = (_YAML, "application/x-yaml", "text/yaml", "text/x-yaml")
_VARY = {"vary": "Accept"}
# Only the catalogue's admins may change which vocabulary has these.
_SHARED_FLAGS = {"default", "valpha"}


class VocabularyChange(BaseModel, defer_build=True):
    """Metadata and rules of a vocabulary. Omitted fields are unchanged; null removes a value."""

    title: PlainText | None = Field(None, max_length=1_000, description="Title.")
    description: PlainText | None = Field(None, max_length=100_000, description="Scope and audience.")
    licence: PlainText | None = Field(None, max_length=1_000, description="Licence: an IRI or a short text.")
    publisher: PlainText | None = Field(None, max_length=1_000, description="Publisher.")
    base: PlainText | None = Field(
        None, max_length=1_000, description="Start of the IRIs of records without an IRI of their own."
    )
    languages: list[str] | None = Field(
        None, max_length=1_000, description="BCP 47 tags. The first is the language of texts without a tag."
    )
    schema_: str | None = Field(
        None, alias="schema", description="Name of a built-in schema, or a schema in LinkML YAML."
    )
    prefixes: dict[str, str | None] | None = Field(None, description="Namespaces of CURIEs, by prefix.")
    defines: list[str] | None = Field(None, max_length=1_000, description="Prefixes whose IDs belong to it.")
    minting: PlainText | None = Field(None, max_length=600, description="Pattern of new IDs, such as `DOID:{n:07}`.")
    private: bool | None = Field(None, description="Whether only accounts with a role in it may read it.")
    default: bool | None = Field(None, description="Whether it is the default vocabulary.")
    valpha: bool | None = Field(None, description="Whether v-alpha and paths without a vocabulary serve it.")


class NewVocabulary(VocabularyChange, defer_build=True):
    """A vocabulary."""

    slug: str = Field(max_length=50, description="Slug used in URLs: lower-case letters, digits and hyphens.")


class _BySlug(Parameters):
    slug: str = Field(description="Slug of a removed vocabulary.")


class _ListParameters(Parameters):
    removed: bool = Field(False, description="Include removed vocabularies (admins only).")


def list_vocabularies(context: RequestContext, query: _ListParameters, snapshot: Snapshot) -> dict[str, Any]:
    """List vocabularies"""
    if not query.removed:
        return {"items": [_serialize(context, snapshot, vocabulary) for vocabulary in list_readable(context)]}
    slugs = set(context.get_scope().slugs)
    reader = context.reader
    if reader is not None:
        slugs |= {slug for slug in VOCABULARIES if reader.has_permission(Permission.ADMINISTER, slug)}
    shown = [item for item in head_records.list_vocabularies(removed=True) if item.slug in slugs]
    return {"items": [_serialize(context, snapshot, vocabulary) for vocabulary in shown]}


def list_readable(context: RequestContext) -> list[Vocabulary]:
    """Return the vocabularies that the caller may read, the default one first."""
    slugs = context.get_scope().slugs
    return [item for item in head_records.list_vocabularies() if item.slug in slugs]


def read_vocabulary(context: RequestContext, snapshot: Snapshot) -> Response:
    """Get a vocabulary"""
    content = _serialize(context, snapshot, context.vocabulary)
    # The version, for If-Match; the revision, since counts change too.
    return json_response(content, etag=f'"{content["version"]}-r{get_position(snapshot).revision}"')


def create_vocabulary(context: RequestContext, body: NewVocabulary, transaction: Transaction) -> WriteResponse:
    """Create a vocabulary"""
    values = {name: value for name, value in _to_values(body).items() if name != "slug" and value is not None}
    if "prefixes" in values:
        values["prefixes"] = apply_merge_patch({}, values["prefixes"])
    # Those are taken from another one, which has to be there first.
    flags = {name: values.pop(name) for name in _SHARED_FLAGS & values.keys()}
    vocabulary = head_records.create_vocabulary(transaction, context.caller.account.id, body.slug, values)
    if any(flags.values()):
        raise Conflict(
            "A new vocabulary cannot be the default one or that of v-alpha. Create it first, then update it."
        )
    return _respond(context, transaction, vocabulary, 201)


def change_vocabulary(context: RequestContext, patch: dict[str, Any], transaction: Transaction) -> WriteResponse:
    """Update a vocabulary

    Updates metadata and rules. A schema is rejected if it is invalid or lacks a class that has records.
    """
    change = _to_values(parse_model(VocabularyChange, patch, INVALID_BODY, strict=True))
    if _SHARED_FLAGS & change.keys():
        context.caller.require(Permission.ADMINISTER)
    if change.get("prefixes") is not None:
        change["prefixes"] = apply_merge_patch(dict(context.vocabulary.prefixes), change["prefixes"])
    empty = Vocabulary(title="", base="", languages=()).to_values()
    values = {name: empty[name] if value is None else value for name, value in change.items()}
    return _update(context, transaction, values)


def remove_vocabulary(context: RequestContext, transaction: Transaction) -> WriteResponse:
    """Remove a vocabulary (can be restored)"""
    _require_expected(context, transaction)
    vocabulary = head_records.remove_vocabulary(transaction, context.caller.account.id, context.vocabulary.slug)
    return _respond(context, transaction, vocabulary)


def restore_vocabulary(context: RequestContext, path: _BySlug, transaction: Transaction) -> WriteResponse:
    """Restore a removed vocabulary"""
    slug = path.slug
    if slug not in VOCABULARIES or not context.caller.has_permission(Permission.ADMINISTER, slug):
        context.get_scope((slug,))
        context.caller.require(Permission.ADMINISTER, slug)
    restored = head_records.restore_vocabulary(transaction, context.caller.account.id, slug)
    return _respond(context, transaction, restored)


def read_schema(context: RequestContext) -> Response:
    """Get the schema of a vocabulary as LinkML or JSON Schema"""
    schema = context.vocabulary.schema
    headers = {"cache-control": "no-cache", **_VARY}
    if choose_format(context.request, _SCHEMA_FORMATS, _VARY) == "linkml":
        return Response(schema.source, headers=headers, media_type=_YAML)
    return OrjsonResponse(to_json_schema(schema), headers={**headers, "content-type": _JSON_SCHEMA})


async def apply_schema(context: RequestContext) -> Response:
    """Apply a LinkML schema

    Lists all problems with line numbers. An invalid schema changes nothing.
    """
    request = context.request
    if get_media_type(request) not in _YAML_TYPES:
        raise HTTPProblem(415, f"Request body must be {_YAML}.")
    body = await context.site.limits.read_body(request)
    update = partial(_update, context, values={"schema": decode_schema(body)})
    key = build_idempotency_request(request, request.headers.get("idempotency-key"), body)
    result = await await_write(context.site.database, make_idempotent(context.caller.account.id, key, update))
    return json_response(result.content, etag=result.etag or "")


def _update(context: RequestContext, transaction: Transaction, values: dict[str, Any]) -> WriteResponse:
    _require_expected(context, transaction)
    vocabulary = head_records.update_vocabulary(transaction, context.caller.account.id, context.vocabulary.slug, values)
    return _respond(context, transaction, vocabulary)


def _require_expected(context: RequestContext, transaction: Transaction) -> None:
    """Raise VersionConflict unless `If-Match` names the version of the vocabulary."""
    version = head_records.get_version(transaction.flush(), context.vocabulary.slug)
    expected = context.expected_versions
    if expected is not None and version not in expected:
        message = f"Vocabulary {context.vocabulary.slug} is at version {version}."
        raise VersionConflict(f"{message} Reload it and retry.", version=version)


def _to_values(body: VocabularyChange) -> dict[str, Any]:
    return body.model_dump(by_alias=True, exclude_unset=True)


def _respond(
    context: RequestContext, transaction: Transaction, vocabulary: Vocabulary, status: int = 200
) -> WriteResponse:
    # The cached counts must not include what is not committed.
    counts = head_records.count_by_collection(transaction.flush(), vocabulary)
    content = _serialize(context, transaction.flush(), vocabulary, counts)
    location = f"{V1_PATH}/vocabularies/{vocabulary.slug}" if status == 201 else None
    return WriteResponse(status, content, location, f'"{content["version"]}"')


def _count_records(context: RequestContext, snapshot: Snapshot, vocabulary: Vocabulary) -> dict[str, int]:
    counts = context.site.database.counts.count_at(snapshot, get_position(snapshot).revision)
    names = vocabulary.schema.collections
    return {name: counts[qualify_name(vocabulary.slug, name), RecordState.PUBLISHED] for name in names}


def _serialize(
    context: RequestContext, snapshot: Snapshot, vocabulary: Vocabulary, counts: dict[str, int] | None = None
) -> models.Vocabulary:
    version = head_records.get_version(snapshot, vocabulary.slug)
    valpha, slug = find_valpha_vocabulary(), vocabulary.slug
    return {
        "slug": slug,
        "title": vocabulary.title,
        "description": vocabulary.description,
        "licence": vocabulary.licence,
        "publisher": vocabulary.publisher,
        "base": vocabulary.base if vocabulary.has_base else context.site.get_base(context.request),
        "languages": list(vocabulary.languages),
        "schema": vocabulary.schema.name,
        "prefixes": dict(vocabulary.prefixes),
        "defines": list(vocabulary.defines),
        "minting": vocabulary.minting,
        "private": vocabulary.is_private,
        "default": get_default_vocabulary().slug == slug,
        "valpha": valpha is not None and valpha.slug == slug,
        "removed": vocabulary.is_removed,
        "version": version,
        "counts": _count_records(context, snapshot, vocabulary) if counts is None else counts,
    }


_VOCABULARY = returns(models.Vocabulary, "ETag")
_CREATED = returns(models.Vocabulary, "ETag", "Location", status=201)
_SCHEMAS = {200: Success({_YAML: "LinkmlSchema", _JSON_SCHEMA: "JsonSchema"})}
_PATH = "/vocabularies/{vocabulary}"
_administer = partial(Operation, permission=Permission.ADMINISTER)
_edit = partial(_administer, if_match=True, errors=(409,))
OPERATIONS = (
    Operation("GET", "/vocabularies", list_vocabularies, returns(models.Vocabularies)),
    _administer("POST", "/vocabularies", create_vocabulary, _CREATED, errors=(409,)),
    Operation("GET", _PATH, read_vocabulary, returns(models.Vocabulary)),
    _edit("PATCH", _PATH, change_vocabulary, _VOCABULARY, body=json_body(VocabularyChange, patch=True)),
    _edit("DELETE", _PATH, remove_vocabulary, _VOCABULARY),
    Operation("POST", "/vocabularies/{slug}/restore", restore_vocabulary, _VOCABULARY, errors=(403, 409)),
    Operation("GET", f"{_PATH}/schema", read_schema, _SCHEMAS, errors=(406,)),
    _edit(
        "PUT",
        f"{_PATH}/schema",
        apply_schema,
        _VOCABULARY,
        body=Body({_YAML: "LinkmlSchema"}),
        headers=("Idempotency-Key",),
    ),
)
