"""Rendered records: the bytes that are stored on write and served as they are."""

from typing import NamedTuple

import orjson

from lexarium.domain.identifiers import qualify_id
from lexarium.domain.schema.collections import Collection, Fields
from lexarium.domain.text.characters import name_key, order_key

# Part of every ETag. Increase it when records render to other bytes.
RENDERING_VERSION = 2


class RenderedRecord(NamedTuple):
    """Rendered fields of a record."""

    # v-alpha JSON object.
    body: bytes
    # Length of the prefix of `body` that is the search hit, without the closing brace; 0 if it is none.
    search_hit_length: int
    order_key: str
    name_key: str


def render_fields(collection: Collection, fields: Fields) -> RenderedRecord:
    """Render a record."""
    return render_json(collection, fields["id"], fields["name"], render_body(collection, fields))


def render_body(collection: Collection, fields: Fields) -> bytes:
    """Return the fields of v-alpha as JSON, or, if the collection has none there, those that are not empty."""
    names = collection.valpha_field_names or [
        # `type` is the collection in v-alpha.
        name
        for name, value in fields.items()
        if name == "name" or (value not in ("", None) and name != "type")
    ]
    return orjson.dumps({name: fields[name] for name in names})


def render_json(collection: Collection, record_id: str, name: str, body: bytes) -> RenderedRecord:
    """Render a record whose fields are already JSON."""
    key = order_key(name)
    is_search_hit = collection.search_hit_prefix and record_id.startswith(collection.search_hit_prefix + "_")
    return RenderedRecord(
        body=body,
        search_hit_length=body.index(collection.search_hit_end) if is_search_hit else 0,
        order_key=key if collection.sort_by_name else "",
        name_key=key if name.isascii() else name_key(name),
    )


def get_filter_columns(collection: Collection, fields: Fields) -> tuple[str, str, bool]:
    """Return the columns that lists filter by: class id, owner, and whether the record is flagged."""
    get = fields.get
    class_id = get(collection.class_field or "", "")
    return (
        class_id and qualify_id(collection.vocabulary, class_id),
        get("id_user", ""),
        get("flag_for_curator") not in (0, "", "0", None),
    )


def parse_body(body: bytes) -> Fields:
    """Return the fields of a rendered record."""
    fields: Fields = orjson.loads(body)
    return fields
