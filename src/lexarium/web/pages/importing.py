"""Importing files: sent, looked at, and only then imported."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.editions import Preference
from lexarium.domain.errors import Conflict, Invalid, Problem
from lexarium.domain.relations import RELATIONS
from lexarium.exchange.formats import FORMATS
from lexarium.exchange.mapping import read_pairs
from lexarium.service.access import Deed
from lexarium.service.uploads import KEPT_SECONDS, How, Upload
from lexarium.store import records
from lexarium.web.pages.fields import KINDS, MISTAKES, Typed, mistakes_of, text
from lexarium.web.pages.session import known
from lexarium.web.pages.site import Form, Page, Site, admitted, refuse_foreign, sent_to_sign_in
from lexarium.web.uploads import Sent, read_upload

_IMPORT = "/import"
_PATIENCE_SECONDS = 2.0
"""How long a page waits for an import: most are through by then."""
_TOLD = 200
"""How many warnings, problems and conflicts a page tells one by one."""
_FIELDS = {"format": "Format", "collection": "Collection", "map": "What columns mean"}
"""What the fields are called by which files are read otherwise, each by the option that a command has for it."""
_OPTION = re.compile(rf"--({'|'.join(_FIELDS)})\b")
_FORMATS = {each.name: each for each in FORMATS.values() if each.reads}
_PREFERENCES: dict[str, Preference | None] = {"": None, "ours": "ours", "theirs": "theirs"}


def form(site: Site, request: Request) -> Response:
    """A place for files."""
    return _form(site, request, {}, {})


def _form(site: Site, request: Request, typed: Typed, wrong: Mapping[str, str]) -> Response:
    told = {"typed": typed, "wrong": wrong, "most": site.settings.upload_mb, **_choices()}
    return site.render(request, "import.html", told, 422 if wrong else 200)


async def receive(site: Site, request: Request) -> Response:
    """Keep the files that were sent, and begin to look at them."""
    async with read_upload(request, site.limits) as sent:
        return await run_in_threadpool(_receive, site, request, sent)


def _receive(site: Site, request: Request, sent: Sent) -> Response:
    caller = known(site, request)
    try:
        how = _how(sent.fields, [] if sent.files else [Problem("files", "must be chosen: one or several.")])
        return _seen(site.uploads.receive(caller, sent.files, how, _PATIENCE_SECONDS))
    except MISTAKES as error:
        return _form(site, request, sent.fields, mistakes_of(error, "files"))


def look(site: Site, request: Request) -> Response:
    """What an import would do, or has done; or how far it is."""
    upload = site.uploads.find(known(site, request), request.path_params["ticket"])
    how = upload.how
    pairs = "\n".join(f"{column}={meaning}" for column, meaning in how.map.items())
    return _look(site, request, upload, {"format": how.format, "collection": how.collection, "map": pairs}, {})


def _look(site: Site, request: Request, upload: Upload, typed: Typed, wrong: Mapping[str, str]) -> Response:
    told = {"upload": upload, "most": _TOLD, "minutes": KEPT_SECONDS // 60, "typed": typed, "wrong": wrong}
    notes = upload.problems or upload.report.get("warnings", [])
    told |= {
        "notes": [
            {**each, "what": _OPTION.sub(lambda found: f"“{_FIELDS[found[1]]}”", each["what"])} for each in notes
        ],
        "unread": any(_OPTION.search(each["what"]) for each in notes),
        "there": _there(site, upload),
        "relations": RELATIONS,
    }
    return site.render(request, "imported.html", {**told, **_choices()}, 422 if wrong else 200)


def _there(site: Site, upload: Upload) -> set[str]:
    """Which of the records that a report names are in the catalogue, so that they have a page."""
    named = {each["id"] for several in upload.report.get("records", {}).values() for each in several}
    for several in upload.report.get("relations", {}).values():
        named |= {each[end] for each in several for end in ("source", "target")}
    with site.database.read() as snapshot:
        return records.existing(snapshot, sorted(named))


def look_again(site: Site, request: Request, fields: Typed) -> Response:
    """Read the same files otherwise."""
    caller, ticket = known(site, request), request.path_params["ticket"]
    try:
        return _seen(site.uploads.look(caller, ticket, _how(fields, []), _PATIENCE_SECONDS))
    except MISTAKES as error:
        return _look(site, request, site.uploads.find(caller, ticket), fields, mistakes_of(error))


def confirm(site: Site, request: Request, fields: Typed) -> Response:
    """Import what was looked at."""
    caller, ticket = known(site, request), request.path_params["ticket"]
    try:
        upload = site.uploads.apply(caller, ticket, _PREFERENCES.get(text(fields, "prefer")), _PATIENCE_SECONDS)
    except Conflict:
        upload = site.uploads.find(caller, ticket)
        if not upload.busy:  # Who presses the button twice is shown how far it is.
            raise
    return _seen(upload)


def discard(site: Site, request: Request, fields: Typed) -> Response:
    """Throw the files away."""
    site.uploads.discard(known(site, request), request.path_params["ticket"])
    return RedirectResponse(_IMPORT, 303)


def _how(fields: Typed, problems: list[Problem]) -> How:
    """How files are to be read. Raises `Invalid` with every problem, and these."""
    choices: dict[str, Collection[str]] = {"format": _FORMATS, "collection": COLLECTIONS}
    asked = {name: text(fields, name) for name in choices}
    wrong = [
        Problem(name, f"should be one of {', '.join(choices[name])}, or left open.")
        for name, value in asked.items()
        if value and value not in choices[name]
    ]
    lines = enumerate(text(fields, "map").splitlines())
    meanings: dict[str, str] = {}
    try:
        meanings = read_pairs((f"map/{number}", line) for number, line in lines if line.strip())
    except Invalid as error:
        wrong += error.problems
    if problems or wrong:
        raise Invalid("The files cannot be imported so.", [*problems, *wrong])
    return How(asked["format"], asked["collection"], meanings)


def _choices() -> dict[str, Any]:
    return {"labels": _FIELDS, "formats": [(each.name, each.description) for each in _FORMATS.values()], "kinds": KINDS}


def _seen(upload: Upload) -> Response:
    return RedirectResponse(f"{_IMPORT}/{upload.ticket}", 303)


@dataclass(frozen=True)
class _Sending:
    """A form with files, of which nothing is read before it is known who sends them."""

    path: str
    deed: Deed

    def route(self, site: Site) -> Route:
        """It as the framework has it."""

        async def endpoint(request: Request) -> Response:
            refuse_foreign(request)
            return (
                await receive(site, request) if await admitted(site, request, self.deed) else sent_to_sign_in(request)
            )

        return Route(self.path, endpoint, methods=["POST"])


_ONE = _IMPORT + "/{ticket}"
PAGES = (
    Page(_IMPORT, form, Deed.PUBLISH),
    _Sending(_IMPORT, Deed.PUBLISH),
    Page(_ONE, look, Deed.PUBLISH),
    Form(_ONE, confirm, Deed.PUBLISH),
    Form(f"{_ONE}/look", look_again, Deed.PUBLISH),
    Form(f"{_ONE}/discard", discard, Deed.PUBLISH),
)
