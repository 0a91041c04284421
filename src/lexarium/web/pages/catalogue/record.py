"""Record page and record history."""

import re
from dataclasses import replace
from typing import Any

from starlette.responses import RedirectResponse, Response

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import Record, RecordState
from lexarium.domain.rendering import get_filter_columns
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.timestamps import format_timestamp
from lexarium.domain.vocabulary import Vocabulary
from lexarium.services.curation import review
from lexarium.services.records import browse, detail
from lexarium.services.records.browse import BrowseFilter
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.class_colors import find_class
from lexarium.services.records.detail import RecordDetail
from lexarium.services.records.lookup import find_names, get_latest_change, require_unmerged
from lexarium.services.vocabularies.access import AmbiguousId, get_read_scope
from lexarium.store.position import Snapshot
from lexarium.web.pages.charts.relation_graph import build_graph
from lexarium.web.pages.curation.revert import build_undo_notice
from lexarium.web.pages.filters import format_date, list_record_routes, record_path, to_plural
from lexarium.web.pages.form_fields import get_int
from lexarium.web.pages.page import Page, PageRoute
from lexarium.web.pages.site import get_base_url

_VERSIONS_SHOWN = 5
_HISTORY_PAGE_SIZE = 50
_MEMBERS_SHOWN = 30
# Characters that no key of BibTeX may have.
_BIBTEX_KEY = re.compile(r"[^\w.:/-]")


def show_record(page: Page) -> Response:
    """Render the page of a record, with status 410 if it is retired; raise NotFound or RecordMerged.

    If several vocabularies have the id, show a choice of them, with status 300. Another id of it redirects.
    """
    with page.read() as snapshot:
        try:
            record_id = page.find_record(snapshot)
        except AmbiguousId as error:
            names = find_names(snapshot, error.record_ids)
            choices = [(record_id, names.get(record_id)) for record_id in error.record_ids]
            return page.render("choose_record.html", {"id": page.id, "choices": choices}, 300)
        if get_local_id(record_id) != page.id:
            return RedirectResponse(record_path(record_id), 308, {"cache-control": "no-cache"})
        change = get_latest_change(snapshot, record_id)
        record = change.to_record()
        require_unmerged(record)
        caller = page.site.get_caller(page.request)
        record_detail = detail.load_detail(snapshot, change, get_read_scope(caller), page.languages)
        classes = page.site.class_cache.get(snapshot)
        slug = record.collection.vocabulary
        [described] = page.site.list_described([slug])
        context = {
            "detail": record_detail,
            "described": described,
            "class": find_class(classes, record),
            "is_flagged": get_filter_columns(record.collection, record.fields)[-1],
            "graph": build_graph(record_detail.name.text or record.local_id, record_detail.relation_groups),
            "members": _list_members(page, snapshot, record) if record.collection.is_class_collection else [],
            "versions": detail.list_history(snapshot, record.id, change.version, _VERSIONS_SHOWN),
            "newest": change.version,
            "citations": _build_citations(_get_citation_source(page, described), record_detail),
            "own_color_index": classes[record.id].color_index if record.id in classes else None,
            "notice": None if caller is None else build_undo_notice(page.query, snapshot, change, caller),
            "pending": [] if caller is None else review.list_pending(snapshot, caller, change),
            "chosen_vocabulary": slug,
            "permission_slug": slug,
        }
    return page.render("record.html", context, 200 if record.state == RecordState.PUBLISHED else 410)


def show_history(page: Page) -> Response:
    """Show a page of a record's versions, newest first, whatever its state."""
    before_version = get_int(page.query, "before")
    with page.read() as snapshot:
        record_id = page.find_record(snapshot)
        change = get_latest_change(snapshot, record_id)
        newest = change.version if before_version is None else min(change.version, before_version - 1)
        versions = detail.list_history(snapshot, record_id, newest, _HISTORY_PAGE_SIZE)
        last_version = versions[-1].change.version if versions else 0
        record = change.to_record()
        context = {
            "record": record,
            "versions": versions,
            "newest": change.version,
            "before": last_version if last_version > 1 else None,
            "permission_slug": record.collection.vocabulary,
        }
    return page.render("history.html", context)


def _list_members(page: Page, snapshot: Snapshot, record: Record) -> list[dict[str, Any]]:
    """Return the first records of a class by collection, with their total if it is known."""
    statistics = page.site.statistics_cache.get(get_position(snapshot))
    groups, class_id = [], record.id
    for name in COLLECTIONS.list_names(record.collection.vocabulary):
        if "id_concept_class" in COLLECTIONS[name].fields:
            members = browse.list_page(snapshot, BrowseFilter(name, class_id=class_id), _MEMBERS_SHOWN)
            total = None if statistics is None else statistics.classes.get(class_id, {}).get(name, 0)
            items = [(item.record_id, item.to_record().fields["name"]) for item in members.items]
            if items:
                groups.append({"collection": name, "items": items, "total": total, "more": members.last_id is not None})
    return groups


def _get_citation_source(page: Page, described: Vocabulary) -> Vocabulary:
    """Return a vocabulary; without a configured base IRI, with the requested address as base."""
    is_configured = described.base != Vocabulary.base
    return described if is_configured else replace(described, base=f"{get_base_url(page.request)}/")


def _build_citations(vocabulary: Vocabulary, record_detail: RecordDetail) -> dict[str, str]:
    record, change = record_detail.record, record_detail.change
    name, local_id = record_detail.name.text or record.local_id, record.local_id
    iri = record.iri or vocabulary.record_iri(record.id)
    source = f"{vocabulary.title}, {vocabulary.publisher}" if vocabulary.publisher else vocabulary.title
    escape_table = str.maketrans("", "", "{}\\")
    return {
        "Text": f"“{name}”. {source}, {local_id}, version {change.version}, {format_date(change.at)}. {iri}",
        "BibTeX": f"@misc{{{_BIBTEX_KEY.sub('_', local_id)},\n"
        f"  title = {{{{{name.translate(escape_table)}}}}},\n"
        f"  howpublished = {{{source.translate(escape_table)}}},\n"
        f"  note = {{{local_id}, version {change.version}, among the {to_plural(record.collection.name)}}},\n"
        f"  year = {{{format_timestamp(change.at)[:4]}}},\n"
        f"  url = {{{iri}}}\n}}",
    }


ROUTES = tuple(PageRoute(path, show_history) for path in list_record_routes("history"))
