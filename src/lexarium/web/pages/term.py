"""A record's page: what it is, how it relates to others, how it came to be so."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.about import About
from lexarium.domain.changes import Change, State, Whole
from lexarium.domain.collections import COLLECTIONS, CONCEPT_CLASS
from lexarium.domain.stamps import text_of
from lexarium.service import browsing, dossiers, reviewing
from lexarium.service.browsing import Wanted
from lexarium.service.dossiers import Dossier
from lexarium.store.backend import Snapshot, read_position
from lexarium.web.pages.fields import whole_number
from lexarium.web.pages.graph import graph
from lexarium.web.pages.reverting import done
from lexarium.web.pages.session import caller_of
from lexarium.web.pages.site import Page, Site, base_of
from lexarium.web.pages.wording import day, path_of, plural

_FEW_VERSIONS = 5
_VERSIONS = 50
_FEW_MEMBERS = 30


def record_page(site: Site, request: Request, identifier: str) -> Response:
    """A record's page; where it is retired a 410 that says so, where it is merged the way to its survivor."""
    with site.database.read() as snapshot:
        found = dossiers.find(snapshot, identifier)
        whole = found.whole()
        if whole.state == State.MERGED and whole.replaced_by:
            return RedirectResponse(path_of(whole.replaced_by), 308, {"cache-control": "no-cache"})
        told = _told(site, request, snapshot, dossiers.dossier(snapshot, found)) | _own(site, request, snapshot, found)
    return site.render(request, "term.html", told, 200 if whole.state == State.PUBLISHED else 410)


def history(site: Site, request: Request) -> Response:
    """Every version of a record, some at a time; also of one that is retired or merged."""
    identifier, before = request.path_params["id"], whole_number(request.query_params, "before")
    with site.database.read() as snapshot:
        found = dossiers.find(snapshot, identifier)
        newest = found.version if before is None else min(found.version, before - 1)
        versions = dossiers.history(snapshot, identifier, newest, _VERSIONS)
        last = versions[-1].change.version if versions else 0
        told = {
            "whole": found.whole(),
            "versions": versions,
            "newest": found.version,
            "before": last if last > 1 else None,
        }
    return site.render(request, "history.html", told)


def _told(site: Site, request: Request, snapshot: Snapshot, dossier: Dossier) -> dict[str, Any]:
    whole, change = dossier.whole, dossier.change
    collection = whole.collection.name
    classes = site.classes.at(snapshot)
    return {
        "dossier": dossier,
        "whole": whole,
        "change": change,
        "name": whole.fields["name"],
        "class": classes.get(whole.fields.get("id_concept_class", "")),
        "graph": graph(whole.fields["name"], dossier.groups),
        "members": _members(site, snapshot, whole.id) if collection == CONCEPT_CLASS.name else [],
        "versions": dossiers.history(snapshot, whole.id, change.version, _FEW_VERSIONS),
        "newest": change.version,
        "downloads": _downloads(whole),
        "citations": _citations(_cited(site, request), dossier),
        "own_shade": classes[whole.id].shade if whole.id in classes else None,
    }


def _own(site: Site, request: Request, snapshot: Snapshot, change: Change) -> dict[str, Any]:
    """What only someone who is signed in is told: what they have just done, and what waits to be decided."""
    caller = caller_of(site, request)
    if caller is None:
        return {"done": None, "pending": []}
    return {
        "done": done(request, snapshot, change, caller),
        "pending": reviewing.pending(snapshot, caller, change),
    }


def _members(site: Site, snapshot: Snapshot, class_id: str) -> list[dict[str, Any]]:
    """The first records of a class, by collection, and how many there are where that is known."""
    figures = site.statistics.figures(read_position(snapshot))
    found = []
    for name, collection in COLLECTIONS.items():
        if "id_concept_class" in collection.fields:
            shelf = browsing.shelf(snapshot, Wanted(name, class_id=class_id), _FEW_MEMBERS)
            total = None if figures is None else figures.classes.get(class_id, {}).get(name, 0)
            items = [(each.record, each.whole().fields["name"]) for each in shelf.items]
            found.append({"collection": name, "items": items, "total": total, "more": shelf.last is not None})
    return [each for each in found if each["items"]]


def _downloads(whole: Whole) -> list[tuple[str, str]]:
    """The other forms of a record, the plainest first."""
    quoted = quote(whole.id, safe="")
    own = f"/api/v1/{whole.collection.name}/{quoted}"
    history = ("History as JSON", f"{own}/history")
    if whole.state != State.PUBLISHED:
        return [history]
    forms = {"JSON with relations": "json", "JSON-LD": "jsonld", "Turtle": "turtle"}
    others = [(name, f"/id/{quoted}?format={form}") for name, form in forms.items()]
    return [("JSON", own), *others, history]


def _cited(site: Site, request: Request) -> About:
    """The catalogue, at the address that whoever asks knows it by where nobody has told its own."""
    return site.about if site.about.base != About.base else replace(site.about, base=f"{base_of(request)}/")


def _citations(about: About, dossier: Dossier) -> dict[str, str]:
    whole, change = dossier.whole, dossier.change
    name, where = whole.fields["name"], about.iri(whole.id)
    source = f"{about.title}, {about.publisher}" if about.publisher else about.title
    plain = str.maketrans("", "", "{}\\")
    return {
        "Text": f"“{name}”. {source}, {whole.id}, version {change.version}, {day(change.at)}. {where}",
        "BibTeX": "\n".join(
            [
                f"@misc{{{whole.id},",
                f"  title = {{{{{name.translate(plain)}}}}},",
                f"  howpublished = {{{source.translate(plain)}}},",
                f"  note = {{{whole.id}, version {change.version}, among the {plural(whole.collection.name)}}},",
                f"  year = {{{text_of(change.at)[:4]}}},",
                f"  url = {{{where}}}",
                "}",
            ]
        ),
    }


PAGES = (Page("/id/{id}/history", history),)
