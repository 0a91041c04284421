"""What writers ask of a server besides records: proposals, decided in every way, releases, people, tokens, webhooks."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tests.support.server import Server
from torture.expected_state import Json, WriteRequest, build_definition, build_write, new_name

_V1 = "/api/v1"
_WEBHOOK_URL = "http://127.0.0.1:9/"
"""Where nobody listens."""
_TOKENS_CHECKED = 3
"""How many secrets are tried out, the newest."""


@dataclass
class CreatedItem:
    """Something that was made, by the name that nothing else has."""

    name: str
    id: str = ""
    secret: str = ""


@dataclass
class OtherOperations:
    """What one writer has under way, of all that is no record."""

    rng: random.Random
    contributor: str
    """The token of who proposes."""
    open_proposals: list[CreatedItem] = field(default_factory=list)
    """Proposals that nobody has decided."""
    accounts: list[CreatedItem] = field(default_factory=list)
    """Accounts that have the role they were made with."""
    tokens: list[CreatedItem] = field(default_factory=list)
    """Tokens that are good."""
    revoked: list[CreatedItem] = field(default_factory=list)
    webhooks: list[CreatedItem] = field(default_factory=list)
    """Webhooks that are not paused."""

    def list_possible(self) -> list[Callable[[], WriteRequest]]:
        """What can be asked now."""
        operations = [self._propose, self._propose, self._release, self._create_account, self._create_webhook]
        if self.open_proposals:
            operations += [self._accept, self._accept, self._reject, self._withdraw]
        if self.accounts:
            operations += [self._promote, self._create_token]
        if self.tokens:
            operations += [self._revoke]
        if self.webhooks:
            operations += [self._pause]
        return operations

    def _propose(self) -> WriteRequest:
        item = CreatedItem(new_name())
        change = {"name": item.name, "definition_text": build_definition(item.name)}
        request = _build_v1_write(
            "POST", "proposals", {"collection": "concept", "change": change}, f"{item.name} is proposed"
        )
        return replace(
            self._authorize_as_contributor(request), expected=(202,), on_success=_remember(item, self.open_proposals)
        )

    def _accept(self) -> WriteRequest:
        item = self._pop_random(self.open_proposals)
        facts = (f"{item.name} is there", f"{item.name} is accepted", f"{item.id} is made so")
        return _build_v1_write("POST", f"proposals/{item.id}/accept", {}, *facts)

    def _reject(self) -> WriteRequest:
        item = self._pop_random(self.open_proposals)
        return _build_v1_write("POST", f"proposals/{item.id}/reject", {"reason": "no"}, f"{item.name} is rejected")

    def _withdraw(self) -> WriteRequest:
        item = self._pop_random(self.open_proposals)
        return self._authorize_as_contributor(
            _build_v1_write("POST", f"proposals/{item.id}/withdraw", {}, f"{item.name} is withdrawn")
        )

    def _release(self) -> WriteRequest:
        name = f"r-{new_name()}"
        return _build_v1_write("POST", "releases", {"name": name, "note": "n"}, f"{name} is released")

    def _create_account(self) -> WriteRequest:
        item = CreatedItem(new_name())
        request = _build_v1_write(
            "POST", "users", {"name": item.name, "role": "contributor"}, f"{item.name} has an account"
        )
        return replace(request, on_success=_remember(item, self.accounts))

    def _promote(self) -> WriteRequest:
        item = self._pop_random(self.accounts)
        return _build_v1_write("PATCH", f"users/{item.id}", {"role": "curator"}, f"{item.name} is a curator")

    def _create_token(self) -> WriteRequest:
        item, account = CreatedItem(new_name()), self.rng.choice(self.accounts)
        request = _build_v1_write(
            "POST", "tokens", {"account": account.name, "label": item.name}, f"{item.name} is a token"
        )
        return replace(_disable_retry(request), on_success=_remember(item, self.tokens))

    def _revoke(self) -> WriteRequest:
        item = self._pop_random(self.tokens)

        def move_to_revoked(_: list[Json]) -> None:
            self.revoked.append(item)

        request = _disable_retry(_build_v1_write("DELETE", f"tokens/{item.id}", {}, f"{item.name} is revoked"))
        return replace(request, expected=(204,), on_success=move_to_revoked)

    def _create_webhook(self) -> WriteRequest:
        item = CreatedItem(new_name())
        webhook = {"url": f"{_WEBHOOK_URL}{item.name}", "collections": ["disorder"]}
        request = _disable_retry(_build_v1_write("POST", "webhooks", webhook, f"{item.name} is told"))
        return replace(request, on_success=_remember(item, self.webhooks))

    def _pause(self) -> WriteRequest:
        item = self._pop_random(self.webhooks)
        return _build_v1_write("POST", f"webhooks/{item.id}/disable", {}, f"{item.name} is paused")

    def _authorize_as_contributor(self, request: WriteRequest) -> WriteRequest:
        request.headers["Authorization"] = f"Bearer {self.contributor}"
        return request

    def _pop_random(self, items: list[CreatedItem]) -> CreatedItem:
        return items.pop(self.rng.randrange(len(items)))

    def find_token_errors(self, server: Server) -> Iterator[str]:
        """Which of the newest tokens do not open what they should, or still do."""
        for tokens, status in ((self.tokens, 200), (self.revoked, 401)):
            for item in tokens[-_TOKENS_CHECKED:]:
                response = server.get(f"{_V1}/me", Authorization=f"Bearer {item.secret}")
                if response.status != status:
                    yield f"the token {item.name} gets {response.status} and not {status}"


def list_all_items(server: Server, token: str) -> Iterator[Json]:
    """All that there is besides records, as an admin sees it."""
    headers = {"Authorization": f"Bearer {token}"}
    for name in ("releases", "users", "tokens", "webhooks"):
        yield from server.get(f"{_V1}/{name}", **headers).json["items"]
    cursor = ""
    while True:
        page = server.get(f"{_V1}/proposals?limit=1000{cursor}", **headers).json
        yield from page["items"]
        if page["next"] is None:
            return
        cursor = f"&after={page['next']}"


def derive_item_facts(item: Json) -> Iterator[str]:
    """What is true because something is there, and stands as it does."""
    if "change" in item:
        name = item["change"]["name"]
        yield f"{name} is proposed"
        if item["state"] != "open":
            yield f"{name} is {item['state']}"
    elif "revision" in item:
        yield f"{item['name']} is released"
    elif "label" in item:
        yield f"{item['label']} is a token"
        if item["revoked"]:
            yield f"{item['label']} is revoked"
    elif "url" in item:
        name = item["url"].removeprefix(_WEBHOOK_URL)
        yield f"{name} is told"
        if item["disabled"]:
            yield f"{name} is paused"
    else:
        yield f"{item['name']} has an account"
        if item["role"] == "curator":
            yield f"{item['name']} is a curator"


def _remember(item: CreatedItem, items: list[CreatedItem]) -> Callable[[list[Json]], None]:
    """What to do when something is heard of: it is put into that place."""

    def store_item(results: list[Json]) -> None:
        item.id, item.secret = results[0]["id"], results[0].get("token", "")
        items.append(item)

    return store_item


def _build_v1_write(method: str, path: str, body: Json, *facts: str) -> WriteRequest:
    return build_write(method, f"{_V1}/{path}", [body], list(facts))


def _disable_retry(request: WriteRequest) -> WriteRequest:
    """The same, not to be sent again where it has no answer: what is done twice by it is there twice."""
    del request.headers["Idempotency-Key"]
    return replace(request, is_repeatable=False)
