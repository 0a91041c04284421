"""Record page and record history."""

from dataclasses import replace
from typing import Any

from starlette.responses import Response

from lexarium.domain.record import RecordState
from lexarium.domain.rendering import get_filter_columns
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT_CLASS
from lexarium.domain.timestamps import format_timestamp
from lexarium.domain.vocabulary import Vocabulary
from lexarium.services.curation import review
from lexarium.services.records import browse, detail
from lexarium.services.records.browse import BrowseFilter
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.detail import RecordDetail
from lexarium.services.records.lookup import get_latest_change, require_unmerged
from lexarium.store.position import Snapshot
from lexarium.web.pages.charts.relation_graph import build_graph
from lexarium.web.pages.curation.revert import build_undo_notice
from lexarium.web.pages.filters import format_date, to_plural
from lexarium.web.pages.form_fields import get_int
from lexarium.web.pages.page import Page, PageRoute
from lexarium.web.pages.site import get_base_url

_VERSIONS_SHOWN = 5
_HISTORY_PAGE_SIZE = 50
_MEMBERS_SHOWN = 30


def show_record(page: Page) -> Response:
    """Render the page of a record, with status 410 if it is retired; raise NotFound or RecordMerged."""
    with page.read() as snapshot:
        change = get_latest_change(snapshot, page.id)
        record = change.to_record()
        require_unmerged(record)
        caller, record_detail = page.site.get_caller(page.request), detail.load_detail(snapshot, change)
        classes = page.site.class_cache.get(snapshot)
        is_class = record.collection == CONCEPT_CLASS
        context = {
            "detail": record_detail,
            "class": classes.get(record.fields.get("id_concept_class", "")),
            "is_flagged": get_filter_columns(record.collection, record.fields)[-1],
            "graph": build_graph(record.fields["name"] or record.id, record_detail.relation_groups),
            "members": _list_members(page, snapshot, record.id) if is_class else [],
            "versions": detail.list_history(snapshot, record.id, change.version, _VERSIONS_SHOWN),
            "newest": change.version,
            "citations": _build_citations(_get_citation_source(page), record_detail),
            "own_color_index": classes[record.id].color_index if record.id in classes else None,
            "notice": None if caller is None else build_undo_notice(page.query, snapshot, change, caller),
            "pending": [] if caller is None else review.list_pending(snapshot, caller, change),
        }
    return page.render("record.html", context, 200 if record.state == RecordState.PUBLISHED else 410)


def show_history(page: Page) -> Response:
    """Show a page of a record's versions, newest first, whatever its state."""
    record_id, before_version = page.id, get_int(page.query, "before")
    with page.read() as snapshot:
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
    return page.render("history.html", context)


def _list_members(page: Page, snapshot: Snapshot, class_id: str) -> list[dict[str, Any]]:
    """Return the first records of a class by collection, with their total if it is known."""
    statistics = page.site.statistics_cache.get(get_position(snapshot))
    groups = []
    for name, collection in COLLECTIONS.items():
        if "id_concept_class" in collection.fields:
            members = browse.list_page(snapshot, BrowseFilter(name, class_id=class_id), _MEMBERS_SHOWN)
            total = None if statistics is None else statistics.classes.get(class_id, {}).get(name, 0)
            items = [(item.record_id, item.to_record().fields["name"]) for item in members.items]
            if items:
                groups.append({"collection": name, "items": items, "total": total, "more": members.last_id is not None})
    return groups


def _get_citation_source(page: Page) -> Vocabulary:
    """Return the vocabulary; without a configured base IRI, with the requested address as base."""
    vocabulary = page.site.vocabulary
    is_configured = vocabulary.base != Vocabulary.base
    return vocabulary if is_configured else replace(vocabulary, base=f"{get_base_url(page.request)}/")


def _build_citations(vocabulary: Vocabulary, record_detail: RecordDetail) -> dict[str, str]:
    record, change = record_detail.record, record_detail.change
    name, iri = record.fields["name"] or record.id, vocabulary.record_iri(record.id)
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
