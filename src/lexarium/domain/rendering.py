"""A record as bytes: rendered once, when it is written, and served as it is from then on."""

from typing import NamedTuple

import orjson

from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.fields import Fields
from lexarium.domain.text.characters import name_key, order_key

RENDERING_VERSION = 1
"""Part of every ETag: to be raised when the same record renders to other bytes than before."""


class RenderedRecord(NamedTuple):
    """What the store keeps of a record's fields."""

    body: bytes
    """Its v-alpha JSON object."""
    search_hit_length: int
    """How many of the first bytes, all but a closing brace, are its search hit; 0 where it is never a hit."""
    order_key: str
    name_key: str


def render_fields(collection: Collection, fields: Fields) -> RenderedRecord:
    """The record as bytes. `fields` must hold every field of the collection, in the collection's order."""
    return render_json(collection, fields["id"], fields["name"], orjson.dumps(fields))


def render_json(collection: Collection, record_id: str, name: str, body: bytes) -> RenderedRecord:
    """The same, of fields that are these bytes already."""
    key = order_key(name)
    is_search_hit = collection.search_hit_prefix and record_id.startswith(collection.search_hit_prefix + "_")
    return RenderedRecord(
        body=body,
        search_hit_length=body.index(collection.search_hit_end) if is_search_hit else 0,
        order_key=key if collection.sort_by_name else "",
        name_key=key if name.isascii() else name_key(name),
    )


def get_filter_columns(fields: Fields) -> tuple[str, str, bool]:
    """What else a record is found by in the log: its class, its owner, whether it waits for a curator."""
    get = fields.get
    return get("id_concept_class", ""), get("id_user", ""), bool(get("flag_for_curator"))


def parse_body(body: bytes) -> Fields:
    """The fields of a rendered record."""
    fields: Fields = orjson.loads(body)
    return fields
