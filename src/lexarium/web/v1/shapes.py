"""What v1 answers with, for its OpenAPI document: models that nothing is made of, derived from the registry."""

from functools import cache
from typing import Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, RootModel, create_model

from lexarium.domain.account import Origin, Role
from lexarium.domain.change import Action
from lexarium.domain.labels import AliasScope
from lexarium.domain.proposal import ProposalState
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.fields import SearchHit
from lexarium.domain.schema.relation_types import RelationList
from lexarium.web.v1.schemas import title

# Of types that are known only once the registry is read.
_list: Any = list
_literal: Any = Literal
_union: Any = Union
_root: Any = RootModel

_STAMP = "UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."


class OtherName(BaseModel):
    """Another name of a record."""

    text: str = Field(description="The name itself.")
    lang: str = Field(description="Its language, as a BCP 47 tag.")
    scope: AliasScope = Field(description="How it relates to the name.")


class Version(BaseModel):
    """A version of a record, as its history lists it."""

    version: int
    seq: int = Field(description="The place of the change in the log.")
    at: str = Field(description=f"When. {_STAMP}")
    actor: str = Field(description="Whose change it was, `usr_…`.")
    action: Action
    state: RecordState = Field(description="What the record was from then on.")
    proposal: str | None = Field(description="The proposal that was accepted by it.")
    proposed_by: str | None = Field(description="Whose proposal that was, `usr_…`.")


class History(BaseModel):
    """Every version of a record, the newest first."""

    items: list[Version]


class Difference(BaseModel):
    """A field that two versions do not have alike."""

    field: str
    from_: Any = Field(alias="from", description="What it was.")
    to: Any = Field(description="What it is.")


class Diff(BaseModel):
    """What differs between two versions."""

    from_: int = Field(alias="from")
    to: int
    items: list[Difference]


class RelatedRecord(BaseModel):
    """A record at the other end of a relation."""

    relation: str
    direction: Literal["out", "in"] = Field(description="`out`: the relation is this record's own.")
    id: str = Field(description="Its id; of a mapping, the IRI or CURIE.")
    name: str = Field(description="Its name; of a mapping, empty.")


class Relations(BaseModel):
    """The relations of a record, in both directions."""

    items: list[RelatedRecord]


class ReachedRecord(BaseModel):
    """A record above or below another."""

    id: str
    name: str
    depth: int = Field(description="How many steps away.")


class Reached(BaseModel):
    """What is above or below a record, the nearest first."""

    items: list[ReachedRecord]
    retired: list[ReachedRecord] = Field(description="Retired records on the way.")


class Proposal(BaseModel):
    """A change that someone would like made."""

    id: str
    collection: str
    record: str | None = Field(description="The record that would change; null: it would be a new one.")
    base_version: int | None = Field(description="The version that would change.")
    change: dict[str, Any] = Field(description="A whole draft, or of a record's draft a merge patch.")
    by: str = Field(description="Who made it, `usr_…`.")
    at: str = Field(description=f"When. {_STAMP}")
    state: ProposalState
    decided_by: str | None
    decided_at: str | None
    reason: str = Field(description="Why it was rejected; else empty.")


class Clash(BaseModel):
    """A field that the proposal changes and others have changed since."""

    field: str
    base: Any = Field(description="What it was when the change was proposed.")
    current: Any = Field(description="What it is.")
    proposed: Any = Field(description="What it would be.")


class ProposalInFull(Proposal):
    """A proposal, where the record has moved on under it, and what came of it."""

    conflicts: list[Clash]
    version: int | None = Field(description="The version that it made, once it is accepted.")


class ProposalPage(BaseModel):
    """Some proposals, the oldest first."""

    items: list[Proposal]
    next: str | None = Field(description="What to give as `after` for the next page; null: there is none.")


class Release(BaseModel):
    """A state of the catalogue that has a name."""

    name: str
    revision: int
    note: str
    by: str
    at: str = Field(description=f"When it was named. {_STAMP}")


class Releases(BaseModel):
    """Every release, the newest first."""

    items: list[Release]


class Account(BaseModel):
    """Someone who may write."""

    id: str
    name: str = Field(description="Of one that is erased: its id.")
    role: Role
    erased: bool


class Accounts(BaseModel):
    """Every account, by name."""

    items: list[Account]


class Me(Account):
    """Who the token is of."""

    token_role: Role = Field(description="What this token may do.")


class Token(BaseModel):
    """A token, without its secret."""

    id: str
    account: str = Field(description="The name of its account.")
    label: str
    role: Role
    created: str = Field(description=_STAMP)
    expires: str | None
    last_used: str | None = Field(description="To the minute.")
    revoked: str | None
    origin: Origin = Field(description="How it was made; `sign-in`: it is a session's.")
    made_with: str | None = Field(description="The id of the token that it was made with; revoked with that one.")


class TokenWithSecret(Token):
    """A new token."""

    token: str = Field(description="The secret, told this once: send it as `Authorization: Bearer …`.")


class Tokens(BaseModel):
    """Tokens, the oldest first."""

    items: list[Token]


class Webhook(BaseModel):
    """An address that is told of changes, and how it stands."""

    id: str
    url: str
    collections: list[str] = Field(description="Whose changes; empty: of all.")
    actions: list[Action] = Field(description="Which changes; empty: all.")
    seq: int = Field(description="The last change that was delivered or passed over.")
    created: str = Field(description=_STAMP)
    attempts: int = Field(description="How often the next change was tried in vain.")
    next_attempt: str | None
    failing_since: str | None
    disabled: str | None = Field(description="Since when nothing is sent; null: it is sent to.")


class WebhookWithSecret(Webhook):
    """A webhook with a new secret."""

    secret: str = Field(description="What deliveries are signed with (Standard Webhooks), told this once.")


class Webhooks(BaseModel):
    """Every webhook, the oldest first."""

    items: list[Webhook]


class Trial(BaseModel):
    """What came of trying a webhook out."""

    status: int | None = Field(description="What the receiver answered; null: nothing.")
    error: str | None = Field(description="Why it counts as failed; null: it does not.")


class Delivery(Trial):
    """One attempt to deliver a change."""

    seq: int = Field(description="Of the change; 0 where the webhook was only tried out.")
    at: str = Field(description=_STAMP)


class Deliveries(BaseModel):
    """What was sent, the newest first."""

    items: list[Delivery]


class Service(BaseModel):
    """What the service holds, and where to go on."""

    service: str
    version: str
    revision: int = Field(description="The last change.")
    counts: dict[str, int] = Field(description="How many records are published, by collection.")
    limits: dict[str, Any]
    links: dict[str, str]


class Span(BaseModel):
    """A part of a text, in code points."""

    start: int
    end: int


class Matched(BaseModel):
    """What of a record was found."""

    field: str
    text: str
    kind: str = Field(description="How well it matched.")


class Hit(BaseModel):
    """A record that was found."""

    id: str
    name: str
    collection: str
    state: RecordState
    replaced_by: str | None
    score: float
    matched: Matched
    highlight: list[Span] = Field(description="The parts of `matched.text` that were asked for.")
    explanation: Any = Field(None, description="With `explain`: how the score came about.")


class Annotation(BaseModel):
    """A place in a text where a term is mentioned."""

    start: int = Field(description="In code points, as `end`.")
    end: int
    text: str = Field(description="What stands there.")
    id: str
    name: str
    collection: str


class Annotations(BaseModel):
    """The mentions in a text, in order; an ambiguous one once for each record."""

    annotations: list[Annotation]
    truncated: bool = Field(description="Whether there may be more than are told.")


class Found(BaseModel):
    """What a search found, the best first."""

    hits: list[Hit]
    total: int
    facets: dict[str, dict[str, int]] = Field(description="How many there are of each collection, class and state.")
    class_names: dict[str, str] = Field(description="The names of the classes among the facets, by id.")
    did_you_mean: str | None


class Suggestion(BaseModel):
    """A completion of what someone types."""

    id: str
    name: str
    collection: str
    text: str = Field(description="The name or other name that begins so.")
    highlight: list[Span] = Field(description="The parts of `text` that were typed.")


class Suggestions(BaseModel):
    """The few best completions."""

    suggestions: list[Suggestion]


class FieldError(BaseModel):
    """What is wrong with one field."""

    pointer: str = Field(description="A JSON pointer to the field.")
    detail: str


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str = Field(description="For people.")
    errors: list[FieldError] = Field([], description="422: every wrong field at once.")
    replaced_by: str | None = Field(None, description="410: the record to use instead.")
    merged_into: str = Field("", description="308, 409: the record that it was merged into.")
    version: int = Field(0, description="412: the version that the record has.")
    record: dict[str, Any] = Field({}, description="412: the record as it is.")
    conflicts: list[Clash] = Field([], description="409: where a record has moved on under a proposal.")


class ValphaHit(SearchHit):
    """A term as v-alpha's search shows it."""

    alias: str = Field(description="Other names in one string.")
    definition_text: str
    number: int = Field(alias="ID(c)", description="Its number, counted from 1 in the order returned.")


class ValphaHits(RootModel[list[ValphaHit]]):
    """Terms, the best first; without `q` every term, by name."""


class ValphaProposal(BaseModel):
    """A record that waits for a curator."""

    proposal: str
    state: ProposalState
    change: dict[str, Any]


class ValphaResource(BaseModel):
    """What OPTIONS tells of an address of v-alpha."""

    name: str
    description: str
    methods: list[str]
    parameters: dict[str, str]
    order: str
    fields: list[dict[str, Any]]


@cache
def record_model(name: str) -> type[BaseModel]:
    """A record of this collection, as v1 shows it."""
    collection = COLLECTIONS[name]
    fields: dict[str, Any] = {
        "id": (str, ...),
        "collection": (_literal[name], ...),
        "version": (int, Field(description="How often it was written; its ETag.")),
        "state": (RecordState, ...),
        "replaced_by": (str | None, Field(description="What stands in for it where it is retired or merged.")),
        **_stored(collection),
        "aliases": (list[OtherName], Field(description="Its other names.")),
        "sources": (list[str], Field(description="Where the definition comes from.")),
        "relations": (dict[str, list[str]], Field(description="The targets of its own relations, by relation.")),
        "updated": (str, Field(description=f"When this version was written. {_STAMP}")),
        "updated_by": (str, Field(description="Who wrote this version, `usr_…`.")),
        "warnings": (list[str], Field([], description="In the answer to a write: what its writer should know.")),
    }
    return create_model(title(name), __doc__=collection.description, **fields)


@cache
def page_model(name: str) -> type[BaseModel]:
    """A page of a list of this collection."""
    return create_model(
        f"{title(name)}Page",
        __doc__=f"Some {name} records of a list.",
        items=(_list[record_model(name)], ...),
        next=(str | None, Field(description="The cursor of the next page; null: there is none.")),
        total=(int, Field(description="How many there are on all pages.")),
    )


def _stored(collection: Collection) -> dict[str, Any]:
    return {
        name: (collection.field_types[name], Field(description=info.description))
        for name, info in collection.fields.items()
    }


@cache
def valpha_model(name: str) -> type[BaseModel]:
    """A record of this collection, as v-alpha lists it."""
    collection = COLLECTIONS[name]
    return create_model(f"Valpha{title(name)}", __doc__=f"A {name} in v-alpha's lists.", **_stored(collection))


@cache
def valpha_related_model(name: str) -> type[BaseModel]:
    """A record of this collection, as v-alpha shows it alone."""
    collection = COLLECTIONS[name]
    views: dict[str, Any] = {view.key: (_list[_entry(name, view)], ...) for view in collection.relation_lists}
    return create_model(
        f"Valpha{title(name)}Alone",
        __base__=valpha_model(name),
        __doc__=f"A {name} alone, with its relations.",
        type=(_literal[name], ...),
        **views,
    )


def _entry(name: str, view: RelationList) -> type[BaseModel]:
    fields: dict[str, Any] = {view.id_key: (str, ...), "name": (str, ...)}
    if view.shows_relationship:
        fields["relationship"] = (_literal[tuple(each.name for each in view.relation_types)], ...)
    if view.directions:
        fields["direction"] = (_literal[tuple(view.directions.values())], ...)
    return create_model(f"Valpha{title(name)}{view.key.capitalize()}", **fields)


@cache
def valpha_answer_model(name: str) -> type[BaseModel]:
    """What GET on a collection of v-alpha answers: the list, or the one record that was asked for."""
    answer: type[BaseModel] = _root[_list[valpha_model(name)] | valpha_related_model(name)]
    return create_model(f"Valpha{title(name)}Answer", __base__=answer)


_records = _union[tuple(record_model(name) for name in COLLECTIONS)]
AnyRecord = create_model(
    "AnyRecord",
    __base__=_root[_records],
    __doc__="A record of some collection.",
    root=(_records, Field(discriminator="collection")),
)
Change = create_model(
    "Change",
    __doc__="A change of a record, as the feed and webhooks tell it.",
    seq=(int, Field(description="Its place in the log.")),
    at=(str, Field(description=f"When. {_STAMP}")),
    actor=(str, Field(description="Whose change it was, `usr_…`.")),
    action=(Action, ...),
    collection=(str, ...),
    id=(str, Field(description="The record.")),
    version=(int, Field(description="The version that the record has from then on.")),
    proposal=(str | None, Field(description="The proposal that was accepted by it.")),
    proposed_by=(str | None, Field(description="Whose proposal that was, `usr_…`.")),
    record=(AnyRecord, Field(description="The record as it is from then on.")),
)
Changes = create_model(
    "Changes",
    __doc__="Some changes, in order.",
    items=(_list[Change], ...),
    next=(int, Field(description="What to give as `since` the next time.")),
)
_exported = _union[tuple(valpha_related_model(name) for name in COLLECTIONS)]
VAlphaExport = create_model(
    "VAlphaExport", __base__=_root[_list[_exported]], __doc__="Records of all collections, with their relations."
)


class JsonldExport(RootModel[dict[str, Any]]):
    """SKOS in JSON-LD."""


ANSWERS: tuple[type[BaseModel], ...] = (
    Service, AnyRecord, Changes, History, Diff, Relations, Reached, ProposalInFull, ProposalPage, Releases, Accounts,
    Me, TokenWithSecret, Tokens, WebhookWithSecret, Webhooks, Deliveries, Trial, Problem, ValphaHits, ValphaProposal,
    ValphaResource, Found, Suggestions, Annotations, VAlphaExport, JsonldExport,
    *(page_model(name) for name in COLLECTIONS),
    *(valpha_answer_model(name) for name, collection in COLLECTIONS.items() if collection.in_valpha),
)  # fmt: skip
