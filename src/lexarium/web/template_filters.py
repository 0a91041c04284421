"""Jinja filters for numbers, dates, labels, URLs, links and texts."""

import re
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import parse_qsl, quote, urlencode

from markupsafe import Markup, escape

from lexarium.domain.change import Action
from lexarium.domain.identifiers import MAIN_VOCABULARY, split_id
from lexarium.domain.record import Record
from lexarium.domain.release import Release
from lexarium.domain.schema.collections import get_collection
from lexarium.domain.text.markup import decode_entities, split_emphasis
from lexarium.domain.text.timestamps import format_timestamp, parse_timestamp
from lexarium.domain.vocabulary import VOCABULARIES, find_valpha_vocabulary, get_default_vocabulary, list_definers

_ACTION_LABELS = {
    Action.CREATE: "added",
    Action.UPDATE: "changed",
    Action.RETIRE: "retired",
    Action.MERGE: "merged",
    Action.REVERT: "reverted",
}
# Labels of what forms and histories show besides the fields of a collection.
_OTHER_LABELS = {
    "replaced_by": "replaced by",
    "names": "names in other languages",
    "definitions": "definitions in other languages",
}
_find_special = re.compile("[&<>'\"]").search
# Pages about one record, by name.
_RECORD_PAGES = {
    "edit": "/edit/{id}",
    "relations": "/edit/{id}/relations",
    "merge": "/merge/{id}",
    "retire": "/retire/{id}",
    "revert": "/revert/{id}",
    "history": "/id/{id}/history",
    "comments": "/id/{id}/comments",
}


def to_singular(collection: str) -> str:
    """Return the noun for one record of a collection."""
    return get_collection(collection).label


def to_plural(collection: str) -> str:
    """Return the noun for several records of a collection."""
    return get_collection(collection).plural


def capitalize_first(text: str) -> str:
    """Return a text that begins with a capital letter; the rest stays, as in "PubMed id"."""
    return text[:1].upper() + text[1:]


def field_label(field: str, collection: str = "") -> str:
    """Return the label of a field of a record or form, as the schema has it."""
    slots = get_collection(collection).fields if collection else {}
    if field in slots:
        return slots[field].label
    return _OTHER_LABELS.get(field) or field.replace("_", " ")


def format_number(value: int) -> str:
    """Format a number with thousands separators."""
    return f"{value:,}"


def action_label(action: str) -> str:
    """Return the past participle of a change's action."""
    return _ACTION_LABELS[Action(action)]


def format_iso(at: int | str) -> str:
    """Format a time for the `datetime` attribute."""
    return at if isinstance(at, str) else format_timestamp(at) + "Z"


def format_date(at: int | str) -> str:
    """Format a time as a date, as in "5 May 2024"; return text that is not a timestamp unchanged."""
    milliseconds = parse_timestamp(at) if isinstance(at, str) else at
    if milliseconds is None:
        return str(at)
    try:
        dt = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return format_timestamp(milliseconds)
    return f"{dt.day} {dt:%B} {dt.year}"


def format_datetime(at: int) -> str:
    """Format a time to the minute, as in "5 May 2024, 13:10 UTC"."""
    return f"{format_date(at)}, {format_timestamp(at)[11:16]} UTC"


def format_month(month: str) -> str:
    """Format `2024-12` as "December 2024"."""
    return f"{datetime.strptime(month, '%Y-%m').replace(tzinfo=UTC):%B %Y}"


def split_paragraphs(text: str) -> list[list[str]]:
    """Split a text into paragraphs of lines."""
    return [paragraph.splitlines() for paragraph in text.split("\n\n") if paragraph.strip()]


def format_prose(text: str) -> Markup:
    """Return a text with its Markdown emphasis as HTML, and its HTML entities as characters."""
    decoded = decode_entities(text)
    if "*" not in decoded:
        return escape(decoded)
    parts = split_emphasis(decoded)
    html = "".join([f"<em>{escape(part)}</em>" if is_emphasized else escape(part) for part, is_emphasized in parts])
    return Markup(html)  # noqa: S704 (escaped)


def escape_text(text: str) -> str:
    """Escape a text for HTML. A search for special characters is faster, and most texts have none."""
    return text if _find_special(text) is None else str(escape(text))


def link_record(record_id: str, name: str, language: str = "") -> Markup:
    """Return a link to a record by its name, or by its id if it has none."""
    slug, local_id = split_id(record_id)
    path, text = _build_record_path(slug, local_id), decode_entities(name) or local_id
    lang = f' lang="{escape_text(language)}"' if language else ""
    return Markup(f'<a href="{path}"{lang}>{escape_text(text)}</a>')  # noqa: S704 (escaped)


def link_outside(text: str, url: str | None) -> Markup:
    """Return a text as a link to another site, if there is an address."""
    if not url:
        return escape(text)
    return Markup(f'<a href="{escape(url)}" rel="external">{escape(text)}</a>')  # noqa: S704 (escaped)


def record_path(record_id: str) -> str:
    """Return the path of a record's page, which needs no escapes in HTML."""
    return _build_record_path(*split_id(record_id))


def _build_record_path(slug: str, local_id: str) -> str:
    vocabulary = _name_vocabulary(slug, local_id)
    path = _quote_id_path(local_id)
    # A slug needs no escapes.
    return path if vocabulary is None else f"{path}?vocabulary={vocabulary}"


# A page links most records more than once, and to escape an id takes longer than to find it.
@lru_cache(maxsize=1_000)
def _quote_id_path(local_id: str) -> str:
    return "/id/" + quote(local_id, safe="")


def record_page(record_id: str, name: str) -> str:
    """Return the path of another page about a record, such as `edit`.

    An id with a slash is a parameter: servers and proxies do not keep `%2F` apart from `/`.
    """
    slug, local_id = split_id(record_id)
    vocabulary = _name_vocabulary(slug, local_id)
    if "/" in local_id or local_id in (".", ".."):
        return add_query(f"/{name}", id=local_id, vocabulary=vocabulary)
    return add_query(_RECORD_PAGES[name].format(id=quote(local_id, safe="")), vocabulary=vocabulary)


def release_path(release: Release) -> str:
    """Return the path of a release's page."""
    return f"/vocabularies/{release.vocabulary}/releases/{quote(release.local_name, safe='')}"


def list_record_routes(name: str) -> tuple[str, str]:
    """Return the paths of the routes that `record_page` leads to."""
    return _RECORD_PAGES[name], f"/{name}"


def _name_vocabulary(slug: str, local_id: str) -> str | None:
    """Return the vocabulary unless an id without one means the record there."""
    prefix, colon, _ = local_id.partition(":")
    definers = list_definers(prefix) if colon else ()
    return None if (definers or (MAIN_VOCABULARY,)) == (slug,) else slug


def browse_path(collection: str, page: str = "", /, **parameters: object) -> str:
    """Return the path of the list of a collection, or of a page below it, such as `tree`."""
    path = f"/browse/{get_collection(collection).local_name}" + (f"/{page}" if page else "")
    return add_query(path, vocabulary=get_other_vocabulary(collection), **parameters)


def propose_path(collection: str, **parameters: object) -> str:
    """Return the path of the form for a new record of a collection."""
    path = f"/propose/{get_collection(collection).local_name}"
    return add_query(path, vocabulary=get_other_vocabulary(collection), **parameters)


def get_other_vocabulary(collection: str) -> str | None:
    """Return the vocabulary of a collection, or None if paths need not name it."""
    slug = get_collection(collection).vocabulary
    return None if slug == get_default_vocabulary().slug else slug


def vocabulary_title(slug: str) -> str:
    """Return the title of a vocabulary."""
    return VOCABULARIES[slug].title


def get_slug(collection: str) -> str:
    """Return the vocabulary of a collection."""
    return get_collection(collection).vocabulary


def get_record_slug(record_id: str) -> str:
    """Return the vocabulary of a record."""
    return split_id(record_id)[0]


def local_name(collection: str) -> str:
    """Return the name of a collection in its vocabulary."""
    return get_collection(collection).local_name


def api_path(record: Record, name: str = "") -> str:
    """Return the path of a record in v1, or of something about it, such as `history`."""
    collection, local_id = record.collection, record.local_id
    valpha = find_valpha_vocabulary()
    has_alias = valpha is not None and valpha.slug == collection.vocabulary
    path = f"/api/v1/{collection.local_name}" if has_alias else f"/api/v1/vocabularies/{collection.vocabulary}/records"
    if name and "/" in local_id:
        return add_query(f"{path}/{name}", id=local_id)
    return f"{path}/{quote(local_id, safe='')}" + (f"/{name}" if name else "")


def quote_path(text: str) -> str:
    """Escape a text as a part of a path."""
    return quote(text, safe="")


def list_query(path: str) -> list[tuple[str, str]]:
    """Return the parameters of a path with their values."""
    return parse_qsl(path.partition("?")[2])


def add_query(path: str, **parameters: object) -> str:
    """Add the parameters that have a value to a path; `class_` becomes `class`, and a list several parameters."""
    given = {name.rstrip("_"): value for name, value in parameters.items() if value not in (None, "", False, (), [])}
    if not given:
        return path
    query = urlencode(given, doseq=True)
    return f"{path}{'&' if '?' in path else '?'}{query}" if query else path
