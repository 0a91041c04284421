"""Record page and record history."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from lexarium.domain.change import Change
from lexarium.domain.identifiers import get_local_id, split_id
from lexarium.domain.record import Record, RecordState
from lexarium.domain.rendering import get_filter_columns
from lexarium.domain.text.timestamps import format_timestamp
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary
from lexarium.services.curation import review
from lexarium.services.record_serializer import build_iri
from lexarium.services.records import browse, detail
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.detail import RecordDetail
from lexarium.services.records.lookup import find_names, find_versions, get_latest_change, require_unmerged
from lexarium.services.records.queries import get_version, get_version_at, resolve_revision
from lexarium.services.vocabularies.access import AmbiguousId, get_read_scope
from lexarium.store.position import Snapshot
from lexarium.web.pages.bibtex import format_bibtex
from lexarium.web.pages.catalogue.relation_html import format_graph_groups, format_relations, format_tree
from lexarium.web.pages.charts.relation_graph import build_graph
from lexarium.web.pages.curation import comments
from lexarium.web.pages.curation.revert import build_undo_notice
from lexarium.web.pages.form_fields import get_int
from lexarium.web.pages.page import Page, PageRoute
from lexarium.web.site import get_base_url
from lexarium.web.template_filters import add_query, format_date, record_page, record_path, to_plural

_HISTORY_PAGE_SIZE = 50
_MEMBERS_SHOWN = 30


def show_record(page: Page) -> Response:
    """Render the page of a record, with status 410 if it is retired; raise NotFound or RecordMerged.

    If several vocabularies have the id, show a choice of them, with status 300. Another id of it redirects. A version,
    or the record as a release had it, is shown with status 200 whatever its state.
    """
    with page.read() as snapshot:
        try:
            record_id, versions = _find_versions(page, snapshot)
        except AmbiguousId as error:
            return _offer_choice(page, snapshot, error)
        if not versions or get_local_id(record_id) != page.id:
            return RedirectResponse(record_path(record_id), 308, {"cache-control": "no-cache"})
        latest = versions[0]
        past = _find_past_version(page, snapshot, latest)
        record = (past or latest).to_record()
        if past is None:
            require_unmerged(record)
        context = _build_context(page, snapshot, record, [past] if past else versions, is_past=past is not None)
        context |= {"newest": latest.version, "release": page.query.get("release") if past else None}
    is_gone = past is None and context["detail"].record.state != RecordState.PUBLISHED
    return page.render("record.html", context, 410 if is_gone else 200)


def _find_versions(page: Page, snapshot: Snapshot) -> tuple[str, list[Change]]:
    """Return the record that the id of a page means, and its last versions; raise NotFound or AmbiguousId."""
    count = detail.VERSIONS_SHOWN + 1
    position, record_id, versions = find_versions(snapshot, page.id, page.choose_scope(), count)
    if page.site.database.follow_vocabularies(snapshot, position):
        _, record_id, versions = find_versions(snapshot, page.id, page.choose_scope(), count)
    return record_id, versions


def _find_past_version(page: Page, snapshot: Snapshot, latest: Change) -> Change | None:
    """Return the version that `version`, `release` or `as_of` names, if any; raise NotFound or InvalidInput."""
    version, release, as_of = get_int(page.query, "version"), page.query.get("release"), get_int(page.query, "as_of")
    if version is not None:
        return latest if version == latest.version else get_version(snapshot, None, latest.record_id, version)
    if release or as_of is not None:
        revision = resolve_revision(snapshot, release or None, as_of, latest.vocabulary)
        return get_version_at(snapshot, latest.record_id, revision)
    return None


def _build_context(
    page: Page, snapshot: Snapshot, record: Record, versions: Sequence[Change], *, is_past: bool
) -> dict[str, Any]:
    change = versions[0]
    caller = page.site.get_caller(page.request)
    scope = get_read_scope(caller)
    record_detail = detail.load_detail(snapshot, record, versions, scope, page.languages, is_past=is_past)
    classes = page.site.class_cache.get(snapshot)
    slug = record.collection.vocabulary
    described = VOCABULARIES[slug]
    iri = build_iri(record.id, record.iri, page.site.get_base(page.request))
    own_path = f"/id/{quote(page.id, safe='')}"
    graph = build_graph(record_detail.name.text or record.local_id, record_detail.relation_groups)
    # The page was found by this path.
    path = add_query(own_path, vocabulary=slug if page.scope_is_chosen else None)
    return {
        "detail": record_detail,
        "path": path,
        "is_past": is_past,
        "described": described,
        "class": classes.get(record.class_id),
        "namesakes": [(item, classes.get(item.class_id)) for item in record_detail.namesakes],
        "is_flagged": get_filter_columns(record.collection, record.fields)[-1],
        "relations": format_relations(record_detail.relation_groups),
        "graph": graph,
        "graph_groups": format_graph_groups(graph) if graph else "",
        "tree": format_tree(record_detail.hierarchy, record.collection),
        "members": _list_members(page, snapshot, record) if record.collection.is_class_collection else [],
        "versions": record_detail.history,
        "citations": _build_citations(
            described, record_detail, iri, get_base_url(page.request) + add_query(path, version=change.version)
        ),
        "own_color_index": classes[record.id].color_index if record.id in classes else None,
        "notice": None if caller is None else build_undo_notice(page.query, snapshot, change, caller),
        "pending": [] if caller is None or is_past else review.list_pending(snapshot, caller, change),
        "chosen_vocabulary": slug,
        "permission_slug": slug,
        "comments": comments.build_context(page, snapshot, record),
        "discovery": None if is_past else _describe_to_robots(page, described, record_detail, iri),
        "canonical": get_base_url(page.request) + record_path(record.id),
    }


def _describe_to_robots(
    page: Page, vocabulary: Vocabulary, record_detail: RecordDetail, iri: str
) -> dict[str, Any] | None:
    """Return what search engines and previews of links read of a record; None if the catalogue is private."""
    record = record_detail.record
    if page.site.settings.read == "token" or vocabulary.is_private or record.state != RecordState.PUBLISHED:
        return None
    base = get_base_url(page.request)
    url = base + record_path(record.id)
    term = {
        "@context": "https://schema.org",
        "@type": "DefinedTerm",
        "@id": iri,
        "url": url,
        "termCode": record.local_id,
        "name": record_detail.name.text,
        "description": record_detail.definition.text,
        "alternateName": [alias.text for alias in record.aliases],
        "inDefinedTermSet": {
            "@type": "DefinedTermSet",
            "name": vocabulary.title,
            "url": f"{base}/vocabularies/{vocabulary.slug}",
        },
    }
    return {
        "url": url,
        "languages": {tag: base + add_query(record_path(record.id), lang=tag) for tag in record_detail.languages},
        "term": {key: value for key, value in term.items() if value},
    }


def _offer_choice(page: Page, snapshot: Snapshot, error: AmbiguousId, name: str = "") -> Response:
    """Show the records that an id may mean, with links to them or to pages about them."""
    names = find_names(snapshot, error.record_ids)
    path = f"/{name}" if name else f"/id/{quote(page.id, safe='')}"
    choices = [
        (
            record_id,
            names.get(record_id),
            add_query(path, id=page.id if name else None, vocabulary=split_id(record_id)[0]),
        )
        for record_id in error.record_ids
    ]
    return page.render("choose_record.html", {"id": page.id, "choices": choices}, 300)


def show_history(page: Page) -> Response:
    """Show a page of a record's versions, newest first, whatever its state.

    If several vocabularies have the id, show a choice of them, with status 300. Another id of it redirects.
    """
    before_version = get_int(page.query, "before")
    with page.read() as snapshot:
        try:
            record_id = page.find_record(snapshot)
        except AmbiguousId as error:
            return _offer_choice(page, snapshot, error, "history")
        if get_local_id(record_id) != page.id:
            return RedirectResponse(record_page(record_id, "history"), 308, {"cache-control": "no-cache"})
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
    totals = {} if statistics is None else statistics.classes.get(record.id, {})
    members = browse.list_members(snapshot, record, _MEMBERS_SHOWN + 1)
    return [
        {
            "collection": name,
            "items": items[:_MEMBERS_SHOWN],
            "total": None if statistics is None else totals.get(name, 0),
            "more": len(items) > _MEMBERS_SHOWN,
        }
        for name, items in members.items()
    ]


def _build_citations(
    vocabulary: Vocabulary, record_detail: RecordDetail, iri: str, permanent_link: str
) -> dict[str, str]:
    record, change = record_detail.record, record_detail.change
    name, local_id = record_detail.name.text or record.local_id, record.local_id
    source = f"{vocabulary.title}, {vocabulary.publisher}" if vocabulary.publisher else vocabulary.title
    note = f"{local_id}, version {change.version}, among the {to_plural(record.collection.name)}"
    return {
        "Text": f"“{name}”. {source}, {local_id}, version {change.version}, {format_date(change.at)}. {iri}",
        "BibTeX": format_bibtex(
            local_id, name, howpublished=source, note=note, year=format_timestamp(change.at)[:4], url=iri
        ),
        "This version": permanent_link,
    }


# The path below a record has a route of its own, since it may be the id of another.
ROUTES = (PageRoute("/history", show_history),)
