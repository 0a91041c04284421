"""A record's page: what it is, how it relates to others, how it came to be so."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.change import Change
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT_CLASS
from lexarium.domain.timestamps import format_timestamp
from lexarium.domain.vocabulary import Vocabulary
from lexarium.services.curation import review
from lexarium.services.records import browse, detail
from lexarium.services.records.browse import BrowseFilter
from lexarium.services.records.detail import RecordDetail
from lexarium.store.position import Snapshot, read_position
from lexarium.web.pages.charts.relation_graph import build_graph
from lexarium.web.pages.curation.revert import build_undo_notice
from lexarium.web.pages.filters import format_date, record_path, to_plural
from lexarium.web.pages.form_fields import get_int
from lexarium.web.pages.page_routes import PageRoute
from lexarium.web.pages.session import get_caller
from lexarium.web.pages.site import Site, get_base_url

_VERSIONS_SHOWN = 5
_HISTORY_PAGE_SIZE = 50
_MEMBERS_SHOWN = 30


def render_record(site: Site, request: Request, record_id: str) -> Response:
    """A record's page; where it is retired a 410 that says so, where it is merged the way to its survivor."""
    with site.database.read() as snapshot:
        change = detail.get_latest_change(snapshot, record_id)
        record = change.to_record()
        if record.state == RecordState.MERGED and record.replaced_by:
            return RedirectResponse(record_path(record.replaced_by), 308, {"cache-control": "no-cache"})
        context = _build_context(site, request, snapshot, detail.load_detail(snapshot, change)) | _build_user_context(
            site, request, snapshot, change
        )
    return site.render(request, "term.html", context, 200 if record.state == RecordState.PUBLISHED else 410)


def show_history(site: Site, request: Request) -> Response:
    """Every version of a record, some at a time; also of one that is retired or merged."""
    record_id, before_version = request.path_params["id"], get_int(request.query_params, "before")
    with site.database.read() as snapshot:
        change = detail.get_latest_change(snapshot, record_id)
        newest = change.version if before_version is None else min(change.version, before_version - 1)
        versions = detail.list_history(snapshot, record_id, newest, _HISTORY_PAGE_SIZE)
        last_version = versions[-1].change.version if versions else 0
        context = {
            "whole": change.to_record(),
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
        "dossier": record_detail,
        "whole": record,
        "change": change,
        "name": record.fields["name"],
        "class": classes.get(record.fields.get("id_concept_class", "")),
        "graph": build_graph(record.fields["name"], record_detail.relation_groups),
        "members": _list_members(site, snapshot, record.id) if collection == CONCEPT_CLASS.name else [],
        "versions": detail.list_history(snapshot, record.id, change.version, _VERSIONS_SHOWN),
        "newest": change.version,
        "downloads": _list_downloads(record),
        "citations": _build_citations(_get_citation_source(site, request), record_detail),
        "own_shade": classes[record.id].color_index if record.id in classes else None,
    }


def _build_user_context(site: Site, request: Request, snapshot: Snapshot, change: Change) -> dict[str, Any]:
    """What only someone who is signed in is told: what they have just done, and what waits to be decided."""
    caller = get_caller(site, request)
    if caller is None:
        return {"done": None, "pending": []}
    return {
        "done": build_undo_notice(request, snapshot, change, caller),
        "pending": review.list_pending(snapshot, caller, change),
    }


def _list_members(site: Site, snapshot: Snapshot, class_id: str) -> list[dict[str, Any]]:
    """The first records of a class, by collection, and how many there are where that is known."""
    statistics = site.statistics_cache.get(read_position(snapshot))
    groups = []
    for name, collection in COLLECTIONS.items():
        if "id_concept_class" in collection.fields:
            page = browse.list_page(snapshot, BrowseFilter(name, class_id=class_id), _MEMBERS_SHOWN)
            total = None if statistics is None else statistics.classes.get(class_id, {}).get(name, 0)
            items = [(item.record_id, item.to_record().fields["name"]) for item in page.items]
            groups.append({"collection": name, "items": items, "total": total, "more": page.last_id is not None})
    return [item for item in groups if item["items"]]


def _list_downloads(record: Record) -> list[tuple[str, str]]:
    """The other forms of a record, the plainest first."""
    quoted_id = quote(record.id, safe="")
    record_url = f"/api/v1/{record.collection.name}/{quoted_id}"
    history_link = ("History as JSON", f"{record_url}/history")
    if record.state != RecordState.PUBLISHED:
        return [history_link]
    formats = {"JSON with relations": "json", "JSON-LD": "jsonld", "Turtle": "turtle"}
    other_formats = [(name, f"/id/{quoted_id}?format={format_name}") for name, format_name in formats.items()]
    return [("JSON", record_url), *other_formats, history_link]


def _get_citation_source(site: Site, request: Request) -> Vocabulary:
    """The catalogue, at the address that whoever asks knows it by where nobody has told its own."""
    return (
        site.vocabulary
        if site.vocabulary.base != Vocabulary.base
        else replace(site.vocabulary, base=f"{get_base_url(request)}/")
    )


def _build_citations(vocabulary: Vocabulary, record_detail: RecordDetail) -> dict[str, str]:
    record, change = record_detail.record, record_detail.change
    name, iri = record.fields["name"], vocabulary.record_iri(record.id)
    source = f"{vocabulary.title}, {vocabulary.publisher}" if vocabulary.publisher else vocabulary.title
    escape_table = str.maketrans("", "", "{}\\")
    return {
        "Text": f"“{name}”. {source}, {record.id}, version {change.version}, {format_date(change.at)}. {iri}",
        "BibTeX": "\n".join(
            [
                f"@misc{{{record.id},",
                f"  title = {{{{{name.translate(escape_table)}}}}},",
                f"  howpublished = {{{source.translate(escape_table)}}},",
                f"  note = {{{record.id}, version {change.version}, among the {to_plural(record.collection.name)}}},",
                f"  year = {{{format_timestamp(change.at)[:4]}}},",
                f"  url = {{{iri}}}",
                "}",
            ]
        ),
    }


ROUTES = (PageRoute("/id/{id}/history", show_history),)
