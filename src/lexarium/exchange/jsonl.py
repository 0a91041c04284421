"""JSON Lines: every version of every record, in the order of the log, with all that is known of it."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict

import orjson

from lexarium.domain.about import About
from lexarium.domain.changes import Change

VERSION = 1
"""Of the format: to be raised when an older Lexarium would misread what is written."""


def write(about: About, revision: int, changes: Iterable[Change]) -> Iterator[bytes]:
    """A line that says what it is, then a line a change."""
    yield orjson.dumps({"lexarium": "jsonl", "format": VERSION, **asdict(about), "revision": revision}) + b"\n"
    batch = write = 0
    for change in changes:
        if change.batch != batch:
            batch, write = change.batch, write + 1
        told = {
            "collection": change.collection,
            "id": change.record,
            "version": change.version,
            "write": write,
            "at": change.at,
            "actor": change.actor,
            "action": change.action,
        }
        # The document is JSON already: to read it and write it again would take most of the time.
        yield orjson.dumps(told)[:-1] + b"," + change.document[1:] + b"\n"
