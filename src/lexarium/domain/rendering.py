"""A record as bytes: rendered once, when it is written, and served as it is from then on."""

from typing import NamedTuple

import orjson

from lexarium.domain.collections import Collection
from lexarium.domain.records import Fields
from lexarium.domain.text import name_key, order_key

VERSION = 1
"""Part of every ETag: to be raised when the same record renders to other bytes than before."""


class Rendering(NamedTuple):
    """What the store keeps of a record's fields."""

    body: bytes
    """Its v-alpha JSON object."""
    hit_length: int
    """How many of the first bytes, all but a closing brace, are its search hit; 0 where it is never a hit."""
    order_key: str
    name_key: str


def render(collection: Collection, fields: Fields) -> Rendering:
    """The record as bytes. `fields` must hold every field of the collection, in the collection's order."""
    return rendering_of(collection, fields["id"], fields["name"], orjson.dumps(fields))


def rendering_of(collection: Collection, identifier: str, name: str, body: bytes) -> Rendering:
    """The same, of fields that are these bytes already."""
    key = order_key(name)
    is_hit = collection.searched_prefix and identifier.startswith(collection.searched_prefix + "_")
    return Rendering(
        body=body,
        hit_length=body.index(collection.hit_end) if is_hit else 0,
        order_key=key if collection.ordered_by_name else "",
        name_key=key if name.isascii() else name_key(name),
    )


def filed_under(fields: Fields) -> tuple[str, str, bool]:
    """What else a record is found by in the log: its class, its owner, whether it waits for a curator."""
    get = fields.get
    return get("id_concept_class", ""), get("id_user", ""), bool(get("flag_for_curator"))


def parse(body: bytes) -> Fields:
    """The fields of a rendered record."""
    fields: Fields = orjson.loads(body)
    return fields
