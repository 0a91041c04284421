"""Writing a record: a new one, or what is there anew; with a look at what it will be, and at what is called alike."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.drafts import checked, draft_model
from lexarium.domain.editing import draft_of, rebased
from lexarium.domain.errors import Gone, Invalid, Moved, NotFound, QuotaExceeded, Stale
from lexarium.domain.proposals import Proposal
from lexarium.service import curating, looking
from lexarium.service.access import Deed
from lexarium.service.desk import Saved, current, found, refuse_gone
from lexarium.service.finding import Hit
from lexarium.service.once import Ask, Outcome, once
from lexarium.store.transaction import Transaction
from lexarium.web.pages import drafts, reverting
from lexarium.web.pages.fields import Typed, mistakes_of, required_version, text
from lexarium.web.pages.proposed import proposed_page
from lexarium.web.pages.session import known
from lexarium.web.pages.site import Form, Page, Site
from lexarium.web.pages.wording import path_of, with_query

_ELSEWHERE = "relations"
"""The field of a draft that has pages of its own."""
_ORDER = ("name", "aliases", "definition", "sources")
_MOST_NAMES = 6
"""How many of the names of a draft are looked for among those of others."""


@dataclass(frozen=True)
class Entry:
    """One field of a draft, as a form has it."""

    name: str
    kind: str
    """What it is filled in with: a `line`, a `long` text, `lines`, or a `choice`."""
    hint: str


@dataclass(frozen=True)
class Sheet:
    """A form that someone fills in."""

    collection: Collection
    typed: Mapping[str, str]
    record: str | None = None
    """The record that is edited; None: it is a new one."""
    version: int | None = None
    """The version that is edited."""
    wrong: Mapping[str, str] = field(default_factory=dict)
    moved: Mapping[str, str] = field(default_factory=dict)
    """What others have made meanwhile of the fields that they have changed."""
    kept: frozenset[str] = frozenset()
    """Those of them that someone here has changed too."""
    previewed: bool = False

    @property
    def status(self) -> int:
        """What the form is answered with."""
        return 409 if self.moved else 422 if self.wrong else 200


def entries(collection: Collection) -> list[Entry]:
    """The fields that people write of a record, as forms have them."""
    found = [entry(collection, name) for name in draft_model(collection.name).model_fields if name != _ELSEWHERE]
    return sorted(found, key=lambda each: _place(collection, each.name))


def entry(collection: Collection, name: str) -> Entry:
    """One of the fields of a draft, as forms have it."""
    if name in drafts.LINES:
        return Entry(name, "lines", drafts.LINES[name])
    if name in collection.class_fields:
        return Entry(name, "choice", "")
    if name == collection.definition:
        return Entry(name, "long", "An empty line begins a new paragraph.")
    return Entry(name, "line", "" if name == "name" else collection.fields[name].description or "")


def _place(collection: Collection, name: str) -> int:
    known_as = "definition" if name == collection.definition else name
    return _ORDER.index(known_as) if known_as in _ORDER else len(_ORDER)


def blank(collection: Collection) -> dict[str, Any]:
    """A draft in which nobody has written yet."""
    fields = draft_model(collection.name).model_fields
    return {
        name: "" if info.is_required() else info.get_default(call_default_factory=True) for name, info in fields.items()
    }


def read(collection: Collection, fields: Typed, base: Mapping[str, Any]) -> dict[str, Any]:
    """The draft that a form was made into. A field that nobody touched is as it was, whatever a form makes of it."""
    shown = drafts.typed_of(base)
    touched = {
        each.name: drafts.read({each.name: _as_sent(each, text(fields, each.name))}, each.name)
        for each in entries(collection)
        if is_touched(each, fields, shown[each.name])
    }
    return {**base, **touched}


def is_touched(entry: Entry, fields: Typed, shown: str) -> bool:
    """Whether someone has made something else of what a field showed."""
    return entry.name in fields and _as_sent(entry, text(fields, entry.name)) != _as_sent(entry, shown)


def _as_sent(entry: Entry, typed: str) -> str:
    """A text as it is read: a browser sends line breaks its own way, and none of one line."""
    lines = typed.replace("\r\n", "\n").replace("\r", "\n")
    return lines.replace("\n", "").strip() if entry.kind == "line" else lines


def choose(site: Site, request: Request) -> Response:
    """Which kind of record it shall be."""
    return site.render(request, "propose.html", {})


def begin(site: Site, request: Request) -> Response:
    """An empty form; with a name where the address tells one."""
    kind = _collection(request)
    typed = {**drafts.typed_of(blank(kind)), "name": request.query_params.get("name", "")}
    return _page(site, request, Sheet(kind, typed), secrets.token_hex(8))


def create(site: Site, request: Request, fields: Typed) -> Response:
    """Make the record, or propose it; or the form again, to look at or with what is wrong."""
    kind, caller = _collection(request), known(site, request)
    draft, typed = read(kind, fields, blank(kind)), _typed(kind, fields)
    if text(fields, "act") == "preview":
        return _page(site, request, Sheet(kind, typed, previewed=True), text(fields, "key"))

    def work(transaction: Transaction) -> Outcome:
        made = curating.create(transaction, caller, kind, draft)
        if isinstance(made, Proposal):
            return Outcome(303, None, proposed_page(made))
        return Outcome(303, None, with_query(path_of(made.whole.id), did=made.version))

    try:
        outcome = site.database.run(once(caller, _ask(fields), work))
    except (Invalid, QuotaExceeded) as error:
        return _page(site, request, Sheet(kind, typed, wrong=mistakes_of(error)), text(fields, "key"))
    return RedirectResponse(str(outcome.location), 303)


def _ask(fields: Typed) -> Ask:
    """A form as its key knows it: the same one sent twice is done once."""
    digest = hashlib.sha256(orjson.dumps(dict(fields), option=orjson.OPT_SORT_KEYS)).hexdigest()
    return Ask.of(f"page-{digest}" if text(fields, "key") else None)


def edit(site: Site, request: Request) -> Response:
    """The form with what is there."""
    with site.database.read() as snapshot:
        there = found(snapshot, request.path_params["id"])
    refuse_gone(there.whole)
    return _page(site, request, _sheet_of(there))


def _sheet_of(there: Saved) -> Sheet:
    typed = drafts.typed_of(draft_of(there.whole))
    return Sheet(there.whole.collection, typed, there.whole.id, there.version)


def save(site: Site, request: Request, fields: Typed) -> Response:
    """Make it so, or propose it; or the form again, to look at, with what is wrong or what others have changed."""
    caller, identifier, version = known(site, request), request.path_params["id"], required_version(fields)
    with site.database.read() as snapshot:
        kind = found(snapshot, identifier).whole.collection
        base = draft_of(looking.version(snapshot, kind, identifier, version).whole())
    draft, typed = read(kind, fields, base), _typed(kind, fields)
    if text(fields, "act") == "preview":
        return _page(site, request, Sheet(kind, typed, identifier, version, previewed=True))

    def work(transaction: Transaction) -> Response:
        before = current(transaction.connection, kind, identifier, version)
        made = curating.edit(transaction, caller, before, draft)
        if isinstance(made, Proposal):
            return RedirectResponse(proposed_page(made), 303)
        return reverting.told(before, made)

    try:
        return site.database.run(work)
    except Stale:
        return _page(site, request, _moved(site, identifier, base, draft, typed))
    except (Invalid, QuotaExceeded) as error:
        return _page(site, request, Sheet(kind, typed, identifier, version, mistakes_of(error)))
    except (Gone, Moved) as error:
        told = f"{error} What you wrote is still here, so that you can take it elsewhere."
        return _page(site, request, Sheet(kind, typed, identifier, version, {"": told}))


def _moved(
    site: Site, identifier: str, base: Mapping[str, Any], draft: Mapping[str, Any], typed: Mapping[str, str]
) -> Sheet:
    """The form on top of what is there now: what someone wrote stands, and beside it what others did meanwhile."""
    with site.database.read() as snapshot:
        there = found(snapshot, identifier)
    present = draft_of(there.whole)
    shown, wanted = drafts.typed_of(present), rebased(base, draft, present)
    mine = frozenset(name for name in base if draft[name] != base[name])
    moved = {name: shown[name] for name in present if present[name] != base[name] and name != _ELSEWHERE}
    return Sheet(
        there.whole.collection,
        {**drafts.typed_of(wanted), **{name: value for name, value in typed.items() if name in mine}},
        identifier,
        there.version,
        moved=moved or {"": ""},
        kept=mine & moved.keys(),
    )


def preview(site: Site, request: Request, fields: Typed) -> Response:
    """What a draft will be, as a piece of a page: for a form that shows it beside what is typed."""
    kind = _collection(request)
    sheet = Sheet(kind, _typed(kind, fields), text(fields, "record") or None, previewed=True)
    return site.render(request, "_draft.html", _seen(site, sheet))


def _page(site: Site, request: Request, sheet: Sheet, key: str = "") -> Response:
    with site.database.read() as snapshot:
        classes = [(each.id, each.name) for each in site.classes.at(snapshot).values()]
    told = {
        "sheet": sheet,
        "entries": entries(sheet.collection),
        "classes": sorted(classes, key=lambda each: each[1].casefold()),
        "key": key,
        **_seen(site, sheet),
    }
    return site.render(request, "draft.html", told, sheet.status)


def _seen(site: Site, sheet: Sheet) -> dict[str, Any]:
    """What a draft will look like, and what is called alike."""
    kind, typed = sheet.collection, sheet.typed
    aliases = drafts.read(typed, "aliases")
    return {
        "mistakes": _mistakes(site, sheet) if sheet.previewed else {},
        "name": typed.get("name", "").strip(),
        "aliases": aliases,
        "definition": typed.get(kind.definition or "", ""),
        "sources": drafts.read(typed, "sources"),
        "alike": _alike(site, sheet, [typed.get("name", "").strip(), *(each["text"] for each in aliases)]),
    }


def _mistakes(site: Site, sheet: Sheet) -> dict[str, str]:
    """What is wrong with a draft so far, but for a name that is still to be typed."""
    kind, kept = sheet.collection, None
    if sheet.record is not None:
        with site.database.read() as snapshot:
            kept = draft_of(found(snapshot, sheet.record).whole)
    try:
        checked(kind, read(kind, sheet.typed, kept or blank(kind)), kept)
    except Invalid as error:
        wrong = mistakes_of(error)
        return {name: told for name, told in wrong.items() if name != "name" or sheet.typed["name"].strip()}
    return {}


def _alike(site: Site, sheet: Sheet, names: Sequence[str]) -> list[Hit]:
    return site.finder.alike(names[:_MOST_NAMES], sheet.collection.name, sheet.record)


def _typed(collection: Collection, fields: Typed) -> dict[str, str]:
    return {each.name: text(fields, each.name) for each in entries(collection)}


def _collection(request: Request) -> Collection:
    name = request.path_params["collection"]
    if name not in COLLECTIONS:
        raise NotFound(f"There is no collection {name!r}; there are {', '.join(COLLECTIONS)}.")
    return COLLECTIONS[name]


PAGES: tuple[Page | Form, ...] = (
    Page("/propose", choose, Deed.PROPOSE),
    Page("/propose/{collection}", begin, Deed.PROPOSE),
    Form("/propose/{collection}", create, Deed.PROPOSE),
    Form("/preview/{collection}", preview, Deed.PROPOSE),
    Page("/edit/{id}", edit, Deed.PROPOSE),
    Form("/edit/{id}", save, Deed.PROPOSE),
)
