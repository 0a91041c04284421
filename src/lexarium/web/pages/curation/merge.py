"""Merge a record into another, with preview."""

from typing import Any

from starlette.responses import Response

from lexarium.domain.errors import NotFound
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import merges
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.records import detail
from lexarium.services.records.lookup import get_published
from lexarium.store.transaction import Transaction
from lexarium.web.pages.curation import revert
from lexarium.web.pages.curation.record_picker import find_choices
from lexarium.web.pages.form_fields import get_int, get_required_version, get_summary, get_text, qualify_sibling
from lexarium.web.pages.page import FormRoute, Page, PageRoute
from lexarium.web.template_filters import add_query, list_record_routes, record_path


def show_form(page: Page) -> Response:
    """Show a search for the survivor or, if the query names it, a preview of the merge."""
    form_values, query_text = page.fields or page.query, page.query.get("q", "")
    context: dict[str, Any] = {"survivor": None}
    with page.read() as snapshot:
        record_id = page.find_record(snapshot)
        page.require(Permission.PUBLISH, record_id)
        survivor_id = qualify_sibling(record_id, get_text(form_values, "into"))
        merged = get_published(snapshot, None, record_id)
        newer_versions = [*revert.list_newer_versions(snapshot, merged, get_int(form_values, "version"))]
        if survivor_id == record_id:
            page.errors = {"into": "A record cannot be merged into itself."}
        elif survivor_id and "into" not in page.errors:
            try:
                survivor = get_published(snapshot, merged.record.collection, survivor_id)
                preview = merges.preview_merge(snapshot, merged.record, survivor.record)
            except NotFound as error:
                page.errors = {"into": str(error)}
            else:
                context = {
                    "survivor": survivor.record,
                    "survivor_version": survivor.version,
                    "preview": preview,
                    "survivor_changes": detail.build_word_diffs(
                        snapshot, preview.survivor_changes, merged.record.collection.vocabulary
                    ),
                }
                newer_versions += revert.list_newer_versions(snapshot, survivor, get_int(form_values, "survivor"))
    context |= {
        "record": merged.record,
        "version": merged.version,
        "newer_versions": newer_versions,
        "q": query_text,
        "choices": find_choices(page.site, query_text, (merged.record.collection.name,), record_id),
        "permission_slug": merged.record.collection.vocabulary,
    }
    return page.render("merge.html", context)


def merge(page: Page) -> Response:
    """Merge a record, and redirect to the survivor."""
    into, version, caller = get_text(page.fields, "into"), get_required_version(page.fields), page.caller
    survivor_version = get_required_version(page.fields, "survivor") if into not in ("", page.id) else None

    summary = get_summary(page.fields)

    def task(transaction: Transaction) -> str:
        record_id = page.find_record(transaction.flush())
        survivor_id = qualify_sibling(record_id, into)
        merged = get_published(transaction.flush(), None, record_id, version)
        if survivor_id != record_id:
            get_published(transaction.flush(), merged.record.collection, survivor_id, survivor_version)
        survivor = RecordWriter(transaction, caller, summary=summary).merge(merged, into)
        return add_query(record_path(survivor.record.id), merged=merged.record.local_id)

    return revert.write_record(page, task, show_form)


ROUTES = tuple(
    route
    for path in list_record_routes("merge")
    for route in (
        PageRoute(path, show_form, Permission.PUBLISH),
        FormRoute(path, merge, Permission.PUBLISH, show_form, "into"),
    )
)
