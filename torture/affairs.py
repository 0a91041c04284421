"""What writers ask of a server besides records: proposals, decided in every way, releases, people, tokens, webhooks."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tests.server import Server
from torture.ledger import Ask, Json, asked, definition, unheard_of

_V1 = "/api/v1"
_HOOK = "http://127.0.0.1:9/"
"""Where nobody listens."""
_TRIED = 3
"""How many secrets are tried out, the newest."""


@dataclass
class Named:
    """Something that was made, by the name that nothing else has."""

    name: str
    id: str = ""
    secret: str = ""


@dataclass
class Affairs:
    """What one writer has under way, of all that is no record."""

    chance: random.Random
    contributor: str
    """The token of who proposes."""
    open: list[Named] = field(default_factory=list)
    """Proposals that nobody has decided."""
    people: list[Named] = field(default_factory=list)
    """Accounts that have the role they were made with."""
    tokens: list[Named] = field(default_factory=list)
    """Tokens that are good."""
    revoked: list[Named] = field(default_factory=list)
    hooks: list[Named] = field(default_factory=list)
    """Webhooks that are not paused."""

    def kinds(self) -> list[Callable[[], Ask]]:
        """What can be asked now."""
        kinds = [self._propose, self._propose, self._release, self._add, self._tell]
        if self.open:
            kinds += [self._accept, self._accept, self._reject, self._withdraw]
        if self.people:
            kinds += [self._promote, self._let_in]
        if self.tokens:
            kinds += [self._revoke]
        if self.hooks:
            kinds += [self._pause]
        return kinds

    def _propose(self) -> Ask:
        new = Named(unheard_of())
        change = {"name": new.name, "definition_text": definition(new.name)}
        ask = _ask("POST", "proposals", {"collection": "concept", "change": change}, f"{new.name} is proposed")
        return replace(self._by_contributor(ask), expected=(202,), then=_known(new, self.open))

    def _accept(self) -> Ask:
        one = self._taken(self.open)
        facts = (f"{one.name} is there", f"{one.name} is accepted", f"{one.id} is made so")
        return _ask("POST", f"proposals/{one.id}/accept", {}, *facts)

    def _reject(self) -> Ask:
        one = self._taken(self.open)
        return _ask("POST", f"proposals/{one.id}/reject", {"reason": "no"}, f"{one.name} is rejected")

    def _withdraw(self) -> Ask:
        one = self._taken(self.open)
        return self._by_contributor(_ask("POST", f"proposals/{one.id}/withdraw", {}, f"{one.name} is withdrawn"))

    def _release(self) -> Ask:
        name = f"r-{unheard_of()}"
        return _ask("POST", "releases", {"name": name, "note": "n"}, f"{name} is released")

    def _add(self) -> Ask:
        new = Named(unheard_of())
        ask = _ask("POST", "users", {"name": new.name, "role": "contributor"}, f"{new.name} has an account")
        return replace(ask, then=_known(new, self.people))

    def _promote(self) -> Ask:
        one = self._taken(self.people)
        return _ask("PATCH", f"users/{one.id}", {"role": "curator"}, f"{one.name} is a curator")

    def _let_in(self) -> Ask:
        new, account = Named(unheard_of()), self.chance.choice(self.people)
        ask = _ask("POST", "tokens", {"account": account.name, "label": new.name}, f"{new.name} is a token")
        return replace(_never_again(ask), then=_known(new, self.tokens))

    def _revoke(self) -> Ask:
        one = self._taken(self.tokens)

        def then(_: list[Json]) -> None:
            self.revoked.append(one)

        ask = _never_again(_ask("DELETE", f"tokens/{one.id}", {}, f"{one.name} is revoked"))
        return replace(ask, expected=(204,), then=then)

    def _tell(self) -> Ask:
        new = Named(unheard_of())
        wanted = {"url": f"{_HOOK}{new.name}", "collections": ["disorder"]}
        ask = _never_again(_ask("POST", "webhooks", wanted, f"{new.name} is told"))
        return replace(ask, then=_known(new, self.hooks))

    def _pause(self) -> Ask:
        one = self._taken(self.hooks)
        return _ask("POST", f"webhooks/{one.id}/disable", {}, f"{one.name} is paused")

    def _by_contributor(self, ask: Ask) -> Ask:
        ask.headers["Authorization"] = f"Bearer {self.contributor}"
        return ask

    def _taken(self, place: list[Named]) -> Named:
        return place.pop(self.chance.randrange(len(place)))

    def misjudged(self, server: Server) -> Iterator[str]:
        """Which of the newest tokens do not open what they should, or still do."""
        for tokens, status in ((self.tokens, 200), (self.revoked, 401)):
            for one in tokens[-_TRIED:]:
                answer = server.get(f"{_V1}/me", Authorization=f"Bearer {one.secret}")
                if answer.status != status:
                    yield f"the token {one.name} gets {answer.status} and not {status}"


def everything(server: Server, token: str) -> Iterator[Json]:
    """All that there is besides records, as an admin sees it."""
    own = {"Authorization": f"Bearer {token}"}
    for name in ("releases", "users", "tokens", "webhooks"):
        yield from server.get(f"{_V1}/{name}", **own).json["items"]
    after = ""
    while True:
        page = server.get(f"{_V1}/proposals?limit=1000{after}", **own).json
        yield from page["items"]
        if page["next"] is None:
            return
        after = f"&after={page['next']}"


def facts_besides(thing: Json) -> Iterator[str]:
    """What is true because something is there, and stands as it does."""
    if "change" in thing:
        name = thing["change"]["name"]
        yield f"{name} is proposed"
        if thing["state"] != "open":
            yield f"{name} is {thing['state']}"
    elif "revision" in thing:
        yield f"{thing['name']} is released"
    elif "label" in thing:
        yield f"{thing['label']} is a token"
        if thing["revoked"]:
            yield f"{thing['label']} is revoked"
    elif "url" in thing:
        name = thing["url"].removeprefix(_HOOK)
        yield f"{name} is told"
        if thing["disabled"]:
            yield f"{name} is paused"
    else:
        yield f"{thing['name']} has an account"
        if thing["role"] == "curator":
            yield f"{thing['name']} is a curator"


def _known(new: Named, place: list[Named]) -> Callable[[list[Json]], None]:
    """What to do when something is heard of: it is put into that place."""

    def then(told: list[Json]) -> None:
        new.id, new.secret = told[0]["id"], told[0].get("token", "")
        place.append(new)

    return then


def _ask(method: str, path: str, body: Json, *facts: str) -> Ask:
    return asked(method, f"{_V1}/{path}", [body], list(facts))


def _never_again(ask: Ask) -> Ask:
    """The same, not to be sent again where it has no answer: what is done twice by it is there twice."""
    del ask.headers["Idempotency-Key"]
    return replace(ask, repeatable=False)
