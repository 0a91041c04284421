"""Random writes other than records: proposals, releases, accounts, tokens, webhooks."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tests.support.server import Server
from torture.expected_state import Json, WriteRequest, build_definition, build_write, new_name

_V1 = "/api/v1"
# Nothing listens there.
_WEBHOOK_URL = "http://127.0.0.1:9/"
# Number of newest tokens that are tested.
_TOKENS_CHECKED = 3


@dataclass
class CreatedItem:
    """Created item and its unique name."""

    name: str
    id: str = ""
    secret: str = ""


@dataclass
class OtherOperations:
    """Items of one write client that are not records."""

    rng: random.Random
    # Token of the account that proposes.
    contributor: str
    open_proposals: list[CreatedItem] = field(default_factory=list)
    # Accounts with their initial role.
    accounts: list[CreatedItem] = field(default_factory=list)
    # Valid tokens.
    tokens: list[CreatedItem] = field(default_factory=list)
    revoked: list[CreatedItem] = field(default_factory=list)
    # Active webhooks.
    webhooks: list[CreatedItem] = field(default_factory=list)

    def list_possible(self) -> list[Callable[[], WriteRequest]]:
        """Return builders of the writes that are possible now."""
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
        facts = (f"{item.name} exists", f"{item.name} is accepted", f"{item.id} is applied")
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
        request = _disable_retry(_build_v1_write("POST", "webhooks", webhook, f"{item.name} has a webhook"))
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
        """Yield tokens among the newest that wrongly work or do not work."""
        for tokens, status in ((self.tokens, 200), (self.revoked, 401)):
            for item in tokens[-_TOKENS_CHECKED:]:
                response = server.get(f"{_V1}/me", Authorization=f"Bearer {item.secret}")
                if response.status != status:
                    yield f"the token {item.name} gets {response.status} and not {status}"


def list_all_items(server: Server, token: str) -> Iterator[Json]:
    """Yield all items other than records, as an admin sees them."""
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
    """Yield the facts that follow from an item and its state."""
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
        yield f"{name} has a webhook"
        if item["disabled"]:
            yield f"{name} is paused"
    else:
        yield f"{item['name']} has an account"
        if item["role"] == "curator":
            yield f"{item['name']} is a curator"


def _remember(item: CreatedItem, items: list[CreatedItem]) -> Callable[[list[Json]], None]:
    """Return a handler that adds the created item to a list."""

    def store_item(results: list[Json]) -> None:
        item.id, item.secret = results[0]["id"], results[0].get("token", "")
        items.append(item)

    return store_item


def _build_v1_write(method: str, path: str, body: Json, *facts: str) -> WriteRequest:
    return build_write(method, f"{_V1}/{path}", [body], list(facts))


def _disable_retry(request: WriteRequest) -> WriteRequest:
    """Return the write marked as not repeatable: repeating it would create a duplicate."""
    del request.headers["Idempotency-Key"]
    return replace(request, is_repeatable=False)
