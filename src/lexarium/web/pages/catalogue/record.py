"""Record page and record history."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT_CLASS
from lexarium.domain.timestamps import format_timestamp
from lexarium.domain.vocabulary import Vocabulary
from lexarium.services.curation import review
from lexarium.services.records import browse, detail
from lexarium.services.records.browse import BrowseFilter
from lexarium.services.records.detail import RecordDetail
from lexarium.services.records.lookup import get_latest_change, require_unmerged
from lexarium.store.position import Snapshot, read_position
from lexarium.web.pages.charts.relation_graph import build_graph
from lexarium.web.pages.curation.revert import build_undo_notice
from lexarium.web.pages.filters import format_date, to_plural
from lexarium.web.pages.form_fields import get_int
from lexarium.web.pages.page_routes import PageRoute
from lexarium.web.pages.site import Site, get_base_url

_VERSIONS_SHOWN = 5
_HISTORY_PAGE_SIZE = 50
_MEMBERS_SHOWN = 30


def render_record(site: Site, request: Request, record_id: str) -> Response:
    """Render the page of a record, with status 410 if it is retired; raise NotFound or RecordMerged."""
    with site.database.read() as snapshot:
        change = get_latest_change(snapshot, record_id)
        record = change.to_record()
        require_unmerged(record)
        caller, record_detail = site.get_caller(request), detail.load_detail(snapshot, change)
        context = {
            **_build_context(site, request, snapshot, record_detail),
            "notice": None if caller is None else build_undo_notice(request, snapshot, change, caller),
            "pending": [] if caller is None else review.list_pending(snapshot, caller, change),
        }
    return site.render(request, "record.html", context, 200 if record.state == RecordState.PUBLISHED else 410)


def show_history(site: Site, request: Request) -> Response:
    """Show a page of a record's versions, newest first, whatever its state."""
    record_id, before_version = request.path_params["id"], get_int(request.query_params, "before")
    with site.database.read() as snapshot:
        change = get_latest_change(snapshot, record_id)
        newest = change.version if before_version is None else min(change.version, before_version - 1)
        versions = detail.list_history(snapshot, record_id, newest, _HISTORY_PAGE_SIZE)
        last_version = versions[-1].change.version if versions else 0
        context = {
            "record": change.to_record(),
            "versions": versions,
            "newest": change.version,
            "before": last_version if last_version > 1 else None,
        }
    return site.render(request, "history.html", context)


def _build_context(site: Site, request: Request, snapshot: Snapshot, record_detail: RecordDetail) -> dict[str, Any]:
    record, change = record_detail.record, record_detail.change
    collection = record.collection.name
    classes = site.class_cache.get(snapshot)
    return {
        "detail": record_detail,
        "record": record,
        "change": change,
        "name": record.fields["name"],
        "class": classes.get(record.fields.get("id_concept_class", "")),
        "graph": build_graph(record.fields["name"], record_detail.relation_groups),
        "members": _list_members(site, snapshot, record.id) if collection == CONCEPT_CLASS.name else [],
        "versions": detail.list_history(snapshot, record.id, change.version, _VERSIONS_SHOWN),
        "newest": change.version,
        "downloads": _list_downloads(record),
        "citations": _build_citations(_get_citation_source(site, request), record_detail),
        "own_color_index": classes[record.id].color_index if record.id in classes else None,
    }


def _list_members(site: Site, snapshot: Snapshot, class_id: str) -> list[dict[str, Any]]:
    """Return the first records of a class by collection, with their total if it is known."""
    statistics = site.statistics_cache.get(read_position(snapshot))
    groups = []
    for name, collection in COLLECTIONS.items():
        if "id_concept_class" in collection.fields:
            page = browse.list_page(snapshot, BrowseFilter(name, class_id=class_id), _MEMBERS_SHOWN)
            total = None if statistics is None else statistics.classes.get(class_id, {}).get(name, 0)
            items = [(item.record_id, item.to_record().fields["name"]) for item in page.items]
            if items:
                groups.append({"collection": name, "items": items, "total": total, "more": page.last_id is not None})
    return groups


def _list_downloads(record: Record) -> list[tuple[str, str]]:
    """Return label and URL of each machine-readable form of a record, simplest first."""
    quoted_id = quote(record.id, safe="")
    record_url = f"/api/v1/{record.collection.name}/{quoted_id}"
    history_link = ("History as JSON", f"{record_url}/history")
    if record.state != RecordState.PUBLISHED:
        return [history_link]
    formats = {"JSON with relations": "json", "JSON-LD": "jsonld", "Turtle": "turtle"}
    other_formats = [(name, f"/id/{quoted_id}?format={format_name}") for name, format_name in formats.items()]
    return [("JSON", record_url), *other_formats, history_link]


def _get_citation_source(site: Site, request: Request) -> Vocabulary:
    """Return the vocabulary; without a configured base IRI, with the requested address as base."""
    vocabulary = site.vocabulary
    is_configured = vocabulary.base != Vocabulary.base
    return vocabulary if is_configured else replace(vocabulary, base=f"{get_base_url(request)}/")


def _build_citations(vocabulary: Vocabulary, record_detail: RecordDetail) -> dict[str, str]:
    record, change = record_detail.record, record_detail.change
    name, iri = record.fields["name"], vocabulary.record_iri(record.id)
    source = f"{vocabulary.title}, {vocabulary.publisher}" if vocabulary.publisher else vocabulary.title
    escape_table = str.maketrans("", "", "{}\\")
    return {
        "Text": f"“{name}”. {source}, {record.id}, version {change.version}, {format_date(change.at)}. {iri}",
        "BibTeX": f"@misc{{{record.id},\n"
        f"  title = {{{{{name.translate(escape_table)}}}}},\n"
        f"  howpublished = {{{source.translate(escape_table)}}},\n"
        f"  note = {{{record.id}, version {change.version}, among the {to_plural(record.collection.name)}}},\n"
        f"  year = {{{format_timestamp(change.at)[:4]}}},\n"
        f"  url = {{{iri}}}\n}}",
    }


ROUTES = (PageRoute("/id/{id}/history", show_history),)
