"""Retire a record."""

from starlette.responses import Response

from lexarium.services.access.permissions import Permission
from lexarium.services.curation import submissions
from lexarium.services.curation.draft_checks import list_retirement_warnings
from lexarium.services.records.lookup import get_published
from lexarium.services.records.queries import list_referrers
from lexarium.store.transaction import Transaction
from lexarium.web.pages.curation import revert
from lexarium.web.pages.curation.record_picker import find_choices, prepend_selected
from lexarium.web.pages.form_fields import get_int, get_required_version, get_summary, get_text, qualify_sibling
from lexarium.web.pages.page import FormRoute, Page, PageRoute
from lexarium.web.template_filters import list_record_routes

_MAX_REFERRERS = 30


def show_form(page: Page) -> Response:
    """Show what uses a record, and a form to retire it."""
    values = {name: get_text(page.fields, name) for name in ("q", "replaced_by", "summary")}
    with page.read() as snapshot:
        record_id = page.find_record(snapshot)
        page.require(Permission.PROPOSE, record_id)
        current = get_published(snapshot, None, record_id)
        choices = find_choices(page.site, values["q"], (current.record.collection.name,), record_id)
        context = {
            "record": current.record,
            "version": current.version,
            "newer_versions": revert.list_newer_versions(snapshot, current, get_int(page.fields, "version")),
            "warnings": list(list_retirement_warnings(snapshot, current.record)),
            "referrers": list_referrers(snapshot, record_id, _MAX_REFERRERS + 1),  # one more than are shown
            "max_referrers": _MAX_REFERRERS,
            "choices": prepend_selected(snapshot, qualify_sibling(record_id, values["replaced_by"]), choices),
            "form_values": values,
            "permission_slug": current.record.collection.vocabulary,
        }
    return page.render("retire.html", context)


def retire(page: Page) -> Response:
    """Retire a record, or propose to; or search for its replacement."""
    if get_text(page.fields, "act") != "retire":
        return show_form(page)
    version, replacement, caller = get_required_version(page.fields), get_text(page.fields, "replaced_by"), page.caller
    summary = get_summary(page.fields)

    def task(transaction: Transaction) -> str:
        record_id = page.find_record(transaction.flush())
        previous = get_published(transaction.flush(), None, record_id, version)
        writer = submissions.open_writer(transaction, caller, previous.record.collection.vocabulary, summary)
        result = writer.retire(previous, replacement or None)
        return revert.build_result_url(result, previous)

    return revert.write_record(page, task, show_form)


ROUTES = tuple(
    route
    for path in list_record_routes("retire")
    for route in (
        PageRoute(path, show_form, Permission.PROPOSE),
        FormRoute(path, retire, Permission.PROPOSE, show_form),
    )
)
