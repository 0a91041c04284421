"""Create, change, remove and restore vocabularies, and apply schemas to them."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.schema.linkml import BUILTIN_NAMES, MAX_SCHEMA_BYTES, decode_schema
from lexarium.domain.vocabulary import Vocabulary, find_valpha_vocabulary, get_default_vocabulary
from lexarium.services.access.permissions import Permission
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.vocabularies import head_records
from lexarium.store.transaction import Transaction
from lexarium.web.http.uploads import UploadedForm
from lexarium.web.pages.collection_counts import summarize
from lexarium.web.pages.form_fields import FORM_ERRORS, FormValues, get_text
from lexarium.web.pages.page import FormRoute, Page, PageRoute, UploadRoute, redirect

_PATH = "/admin/vocabularies"
_DETAIL_PATH = _PATH + "/{slug}"
_TEXTS = ("title", "description", "licence", "publisher", "base", "minting")


def list_all(page: Page) -> Response:
    """Show all vocabularies, removed ones too, with a form to create one."""
    vocabularies = head_records.list_vocabularies(removed=True)
    with page.read() as snapshot:
        counts = page.site.database.counts.count_at(snapshot, get_position(snapshot).revision)
    context = {
        "summaries": summarize(counts, vocabularies),
        "default_slug": get_default_vocabulary().slug,
        "valpha_slug": _get_valpha_slug(),
        "schemas": [(name, name) for name in BUILTIN_NAMES],
    }
    return page.render("admin_vocabularies.html", context)


def create(page: Page) -> Response:
    """Create a vocabulary."""
    slug = get_text(page.fields, "slug").strip()
    values = _parse_values(page.fields, ("title", "description"))
    values |= {"schema": get_text(page.fields, "schema"), "languages": _split_words(page.fields, "languages")}
    page.write(head_records.create_vocabulary, page.caller.account.id, slug, values)
    return redirect(f"{_PATH}/{slug}", did="created")


def show_vocabulary(page: Page) -> Response:
    """Show the settings of a vocabulary, and forms to change it."""
    return _render(page)


def _render(page: Page, **context: Any) -> Response:
    vocabulary = _get_vocabulary(page)
    form_values = page.fields if page.errors and "title" in page.fields else _to_form_values(vocabulary)
    defaults = {
        "described": vocabulary,
        "form_values": form_values,
        "is_default": get_default_vocabulary().slug == vocabulary.slug,
        "is_valpha": _get_valpha_slug() == vocabulary.slug,
        "schemas": [(name, name) for name in BUILTIN_NAMES],
        "schema_problems": [],
        "schema_text": vocabulary.schema.source,
    }
    return page.render("admin_vocabulary.html", {**defaults, **context})


def update(page: Page) -> Response:
    """Change metadata and rules of a vocabulary."""
    fields = page.fields
    values = _parse_values(fields, _TEXTS)
    values |= {
        "languages": _split_words(fields, "languages"),
        "defines": _split_words(fields, "defines"),
        "prefixes": _parse_prefixes(get_text(fields, "prefixes")),
        "private": bool(get_text(fields, "private")),
    }
    return _save(page, values, "changed")


def make_default(page: Page) -> Response:
    """Make a vocabulary the one that pages show first."""
    return _save(page, {"default": True}, "default")


def choose_for_valpha(page: Page) -> Response:
    """Make a vocabulary the one that v-alpha serves."""
    return _save(page, {"valpha": True}, "valpha")


def apply_schema(page: Page, uploaded: UploadedForm) -> Response:
    """Apply a built-in schema, or one in LinkML from a file or the form."""
    fields = uploaded.fields
    source = get_text(fields, "builtin") or get_text(fields, "source")
    try:
        if uploaded.files:
            _, file = uploaded.files[0]
            source = decode_schema(file.read(MAX_SCHEMA_BYTES + 1))
        if not source.strip():
            raise InvalidInput("", [FieldProblem("schema", "must be a built-in schema or a LinkML file.")])
        return _save(page, {"schema": source}, "schema")
    except FORM_ERRORS as error:
        problems = [str(error)]
        if isinstance(error, InvalidInput):
            problems = [f"{item.field}: {item.detail}".removeprefix("schema: ") for item in error.problems]
        page.errors = {"schema": "Schema not applied."}
        return _render(page, schema_problems=problems, schema_text=source)


def confirm_remove(page: Page) -> Response:
    """Explain what removing a vocabulary means, and ask for confirmation."""
    vocabulary = _get_vocabulary(page)
    with page.read() as snapshot:
        counts = page.site.database.counts.count_at(snapshot, get_position(snapshot).revision)
    return page.render("remove_vocabulary.html", {"summary": summarize(counts, [vocabulary])[0]}, error_status=409)


def remove(page: Page) -> Response:
    """Remove a vocabulary, which can be undone."""
    page.write(head_records.remove_vocabulary, page.caller.account.id, _get_slug(page))
    return redirect(_PATH, did="removed")


def restore(page: Page) -> Response:
    """Show a removed vocabulary again."""
    page.write(head_records.restore_vocabulary, page.caller.account.id, _get_slug(page))
    return redirect(f"{_PATH}/{_get_slug(page)}", did="restored")


def _save(page: Page, values: Mapping[str, Any], did: str) -> Response:
    slug, actor = _get_slug(page), page.caller.account.id

    def task(transaction: Transaction) -> Vocabulary:
        return head_records.update_vocabulary(transaction, actor, slug, values)

    page.write(task)
    return redirect(f"{_PATH}/{slug}", did=did)


def _get_slug(page: Page) -> str:
    return str(page.request.path_params["slug"])


def _get_vocabulary(page: Page) -> Vocabulary:
    return head_records.get_vocabulary(_get_slug(page), removed=True)


def _get_valpha_slug() -> str | None:
    chosen = find_valpha_vocabulary()
    return None if chosen is None else chosen.slug


def _parse_values(fields: FormValues, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: get_text(fields, name).strip() for name in names}


def _split_words(fields: FormValues, name: str) -> list[str]:
    return get_text(fields, name).replace(",", " ").split()


def _parse_prefixes(text: str) -> dict[str, str]:
    """Return the prefixes of lines such as `DOID=http://purl.obolibrary.org/obo/DOID_`; raise InvalidInput."""
    pairs = [line.partition("=") for line in text.splitlines() if line.strip()]
    wrong = [prefix for prefix, separator, namespace in pairs if not separator or not namespace.strip()]
    if wrong:
        detail = f"must have lines such as DOID=http://purl.obolibrary.org/obo/DOID_, not {wrong[0].strip()!r}."
        raise InvalidInput("Invalid vocabulary.", [FieldProblem("prefixes", detail)])
    return {prefix.strip(): namespace.strip() for prefix, _, namespace in pairs}


def _to_form_values(vocabulary: Vocabulary) -> dict[str, str]:
    values = vocabulary.to_values()
    return {
        **{name: values[name] for name in _TEXTS},
        "languages": ", ".join(values["languages"]),
        "defines": ", ".join(values["defines"]),
        "prefixes": "\n".join(f"{prefix}={namespace}" for prefix, namespace in values["prefixes"].items()),
        "private": "1" if values["private"] else "",
    }


ROUTES = (
    PageRoute(_PATH, list_all, Permission.ADMINISTER),
    FormRoute(_PATH, create, Permission.ADMINISTER, list_all, "slug"),
    PageRoute(_DETAIL_PATH, show_vocabulary, Permission.ADMINISTER),
    FormRoute(_DETAIL_PATH, update, Permission.ADMINISTER, show_vocabulary),
    FormRoute(f"{_DETAIL_PATH}/default", make_default, Permission.ADMINISTER, show_vocabulary),
    FormRoute(f"{_DETAIL_PATH}/valpha", choose_for_valpha, Permission.ADMINISTER, show_vocabulary),
    UploadRoute(f"{_DETAIL_PATH}/schema", apply_schema, Permission.ADMINISTER),
    PageRoute(f"{_DETAIL_PATH}/remove", confirm_remove, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/remove", remove, Permission.ADMINISTER, confirm_remove),
    FormRoute(f"{_DETAIL_PATH}/restore", restore, Permission.ADMINISTER, show_vocabulary),
)
