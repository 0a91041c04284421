"""Types of the JSON that v1 responds with: plain dictionaries, shared by the server and its client.

The OpenAPI document is derived from these types; the text below a field is its description there.
"""

from typing import Any, Literal, NotRequired

from typing_extensions import TypeAliasType, TypedDict

Action = TypeAliasType("Action", Literal["create", "update", "retire", "merge", "revert"])
State = TypeAliasType("State", Literal["published", "retired", "merged"])
Decision = TypeAliasType("Decision", Literal["open", "accepted", "rejected", "withdrawn"])
Role = TypeAliasType("Role", Literal["none", "reader", "contributor", "curator", "admin"])
Origin = TypeAliasType("Origin", Literal["command-line", "sign-in", "session", "token", "unknown"])


class Alias(TypedDict):
    """Another name of a record."""

    text: str
    """The name itself."""
    lang: str
    """Its language, as a BCP 47 tag."""
    scope: Literal["exact", "narrow", "broad", "related", "hidden"]
    """How it relates to the name."""


class LocalizedText(TypedDict):
    """A name or a definition in a language."""

    text: str
    lang: str
    """Its language, as a BCP 47 tag."""


class Note(LocalizedText):
    """A note about a record."""

    type: str
    """The name of the slot that the schema declares for it, else its predicate."""


class Record(TypedDict):
    """A record of some collection."""

    id: str
    """What its owner calls it; unique in its vocabulary."""
    iri: str
    """What its owner calls it in RDF, else one that begins with the base of the vocabulary or of the service."""
    vocabulary: str
    """The slug of its vocabulary."""
    collection: str
    version: int
    """How often it was written; its ETag."""
    state: State
    replaced_by: str | None
    """Replacement of a retired or merged record."""
    name: str
    """In the language that was asked for, if it has one in that."""
    definition: str
    """Likewise; empty if it has none."""
    names: list[LocalizedText]
    """In all languages."""
    definitions: list[LocalizedText]
    """In all languages."""
    notes: list[Note]
    """In all languages."""
    notations: list[str]
    """Its codes in other systems."""
    aliases: list[Alias]
    """Its other names."""
    sources: list[str]
    """Where the definition comes from."""
    references: list[str]
    """What is stated as a source of it, by whichever predicate."""
    relations: dict[str, list[str]]
    """The targets of its own relations, by relation."""
    mappings: dict[str, list[str]]
    """Those of its relations that lead to other vocabularies."""
    fields: dict[str, str | int | None]
    """Its other fields, as the schema declares them for its collection."""
    statements: dict[str, Any]
    """Statements that the schema declares nothing for, by predicate."""
    updated: str
    """When this version was written. UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""
    updated_by: str
    """Who wrote this version, `usr_…`."""
    warnings: NotRequired[list[str]]
    """In the answer to a write: what its writer should know."""
    # Which of these a record has depends on its collection.
    definition_text: NotRequired[str]
    description: NotRequired[str]
    alias: NotRequired[str]
    id_concept_class: NotRequired[str]
    id_protocol: NotRequired[str]


class RecordPage(TypedDict):
    """Some records of a list."""

    items: list[Record]
    next: str | None
    """The cursor of the next page; null: there is none."""
    total: int
    """How many there are on all pages."""


class Version(TypedDict):
    """A version of a record, as its history lists it."""

    version: int
    seq: int
    """The place of the change in the log."""
    at: str
    """When. UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""
    actor: str
    """Whose change it was, `usr_…`."""
    action: Action
    state: State
    """What the record was from then on."""
    proposal: str | None
    """The proposal that was accepted by it."""
    proposed_by: str | None
    """Whose proposal that was, `usr_…`."""


class History(TypedDict):
    """Every version of a record, the newest first."""

    items: list[Version]


Difference = TypedDict("Difference", {"field": str, "from": Any, "to": Any})
Difference.__doc__ = "A field that two versions do not have alike."
Diff = TypedDict("Diff", {"from": int, "to": int, "items": list[Difference]})
Diff.__doc__ = "What differs between two versions."


class Related(TypedDict):
    """A record at the other end of a relation."""

    relation: str
    direction: Literal["out", "in"]
    """`out`: the relation is this record's own."""
    id: str
    """Its id; of a mapping, the IRI or CURIE."""
    name: str
    """Its name; of a mapping, empty."""
    vocabulary: str | None
    """The slug of its vocabulary; of a mapping, null."""


class Relations(TypedDict):
    """The relations of a record, in both directions."""

    items: list[Related]


class Reached(TypedDict):
    """A record above or below another."""

    id: str
    name: str
    depth: int
    """How many steps away."""


class Hierarchy(TypedDict):
    """Ancestors or descendants of a record, nearest first."""

    items: list[Reached]
    retired: list[Reached]
    """Retired records on the way."""


class Change(TypedDict):
    """A change of a record, as the feed and webhooks send it."""

    seq: int
    """Its place in the log."""
    at: str
    """When. UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""
    actor: str
    """Whose change it was, `usr_…`."""
    action: Action
    vocabulary: str
    collection: str
    id: str
    """The record."""
    version: int
    """The version that the record has from then on."""
    proposal: str | None
    """The proposal that was accepted by it."""
    proposed_by: str | None
    """Whose proposal that was, `usr_…`."""
    record: Record
    """The record as it is from then on."""


class Changes(TypedDict):
    """Some changes, in order."""

    items: list[Change]
    next: int
    """What to give as `since` the next time."""


class BatchResult(TypedDict):
    """Result of one line of a batch."""

    id: str
    vocabulary: str
    version: int
    state: State
    warnings: NotRequired[list[str]]
    """What its writer should know."""


class Proposal(TypedDict):
    """A proposed change."""

    id: str
    vocabulary: str
    collection: str
    record: str | None
    """The record that would change; null: it would be a new one."""
    base_version: int | None
    """The version that would change."""
    change: dict[str, Any]
    """A whole draft, or of a record's draft a merge patch."""
    by: str
    """Who made it, `usr_…`."""
    at: str
    """When. UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""
    state: Decision
    decided_by: str | None
    decided_at: str | None
    reason: str
    """Why it was rejected; else empty."""


class FieldConflict(TypedDict):
    """A field that the proposal changes and others have changed since."""

    field: str
    base: Any
    """What it was when the change was proposed."""
    current: Any
    """What it is."""
    proposed: Any
    """What it would be."""


class ProposalDetail(Proposal):
    """A proposal, where the record has moved on under it, and what came of it."""

    conflicts: list[FieldConflict]
    version: int | None
    """The version that it made, once it is accepted."""


class ProposalPage(TypedDict):
    """Some proposals, the oldest first."""

    items: list[Proposal]
    next: str | None
    """What to give as `after` for the next page; null: there is none."""


class Release(TypedDict):
    """A state of a vocabulary that has a name."""

    name: str
    vocabulary: str
    revision: int
    note: str
    by: str
    at: str
    """When it was named. UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""


class Releases(TypedDict):
    """Every release, the newest first."""

    items: list[Release]


class Account(TypedDict):
    """An account that may write."""

    id: str
    name: str
    """Of one that is erased: its id."""
    role: Role
    """In all vocabularies."""
    vocabulary_roles: dict[str, Role]
    """Further roles in single ones, by slug."""
    erased: bool


class Accounts(TypedDict):
    """Every account, by name."""

    items: list[Account]


class Me(Account):
    """Account of the token."""

    token_role: Role
    """What this token may do."""


class Token(TypedDict):
    """A token, without its secret."""

    id: str
    account: str
    """The name of its account."""
    label: str
    role: Role
    created: str
    """UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""
    expires: str | None
    last_used: str | None
    """To the minute."""
    revoked: str | None
    origin: Origin
    """How it was made; `sign-in`: it is a session's."""
    made_with: str | None
    """The id of the token that it was made with; revoked with that one."""


class TokenWithSecret(Token):
    """A new token."""

    token: str
    """The secret, shown only once: send it as `Authorization: Bearer …`."""


class Tokens(TypedDict):
    """Tokens, the oldest first."""

    items: list[Token]


class Webhook(TypedDict):
    """A URL that receives changes, and its state."""

    id: str
    url: str
    vocabularies: list[str]
    """Whose changes; empty: of all."""
    collections: list[str]
    """Whose changes; empty: of all."""
    actions: list[Action]
    """Which changes; empty: all."""
    seq: int
    """The last change that was delivered or passed over."""
    created: str
    """UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""
    attempts: int
    """How often the next change was tried in vain."""
    next_attempt: str | None
    failing_since: str | None
    disabled: str | None
    """Since when nothing is sent; null: it is sent to."""


class WebhookWithSecret(Webhook):
    """A webhook with a new secret."""

    secret: str
    """Secret that signs deliveries (Standard Webhooks), shown only once."""


class Webhooks(TypedDict):
    """Every webhook, the oldest first."""

    items: list[Webhook]


class WebhookTest(TypedDict):
    """Result of a test delivery."""

    status: int | None
    """What the receiver answered; null: nothing."""
    error: str | None
    """Why it counts as failed; null: it does not."""


class Delivery(WebhookTest):
    """One attempt to deliver a change."""

    seq: int
    """Of the change; 0 where the webhook was only tried out."""
    at: str
    """UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""


class Deliveries(TypedDict):
    """Deliveries, newest first."""

    items: list[Delivery]


class VocabularyLink(TypedDict):
    """A vocabulary, and where to read more of it."""

    slug: str
    title: str
    url: str


class Vocabulary(TypedDict):
    """Metadata, rules and counts of a vocabulary."""

    slug: str
    title: str
    description: str
    licence: str
    """An IRI or a short text; may be empty."""
    publisher: str
    base: str
    """Start of the IRIs of records that have none of their own."""
    languages: list[str]
    """Those of its texts. The first is that of texts without a tag."""
    schema: str
    """The name of its schema."""
    prefixes: dict[str, str]
    """Namespaces of CURIEs, by prefix."""
    defines: list[str]
    """Prefixes whose ids it defines."""
    minting: str
    """The rule for new ids; empty: random ones."""
    private: bool
    """Whether only accounts with a role in it may read it."""
    default: bool
    """Whether pages show it first."""
    valpha: bool
    """Whether v-alpha and paths without a vocabulary serve it."""
    removed: bool
    version: int
    """How often its metadata and rules were written; its ETag begins so."""
    counts: dict[str, int]
    """How many records are published, by collection."""


class Vocabularies(TypedDict):
    """Vocabularies, the default one first."""

    items: list[Vocabulary]


class Candidate(TypedDict):
    """A record that an id may mean."""

    id: str
    vocabulary: str
    name: str
    url: str


class Service(TypedDict):
    """Contents of the service, and links."""

    service: str
    version: str
    revision: int
    """The last change."""
    counts: dict[str, int]
    """How many records are published, by collection of the default vocabulary."""
    vocabularies: list[VocabularyLink]
    """Those that you may read, the default one first."""
    limits: dict[str, Any]
    links: dict[str, str]


class Span(TypedDict):
    """A part of a text, in code points."""

    start: int
    end: int


class Match(TypedDict):
    """Part of a record that matched."""

    field: str
    text: str
    language: str | None
    """The language of `text`; none of an identifier."""
    kind: str
    """How well it matched."""


class Hit(TypedDict):
    """A record that was found."""

    id: str
    name: str
    vocabulary: str
    collection: str
    state: State
    replaced_by: str | None
    score: float
    matched: Match
    highlight: list[Span]
    """Parts of `matched.text` that match the query."""
    explanation: NotRequired[Any]
    """With `explain`: how the score came about."""


class SearchResults(TypedDict):
    """Search results, best first."""

    hits: list[Hit]
    total: int
    facets: dict[str, dict[str, int]]
    """How many there are of each vocabulary, collection, class and state."""
    class_names: dict[str, str]
    """The names of the classes among the facets, by id."""
    did_you_mean: str | None


class Suggestion(TypedDict):
    """A completion of a prefix."""

    id: str
    name: str
    vocabulary: str
    collection: str
    text: str
    """The name or other name that begins so."""
    language: str | None
    """The language of `text`."""
    highlight: list[Span]
    """The parts of `text` that were typed."""


class Suggestions(TypedDict):
    """The few best completions."""

    suggestions: list[Suggestion]


class Annotation(TypedDict):
    """A place in a text where a term is mentioned."""

    start: int
    """In code points, as `end`."""
    end: int
    text: str
    """The text of the mention."""
    id: str
    name: str
    vocabulary: str
    collection: str


class Annotations(TypedDict):
    """The mentions in a text, in order; an ambiguous one once for each record."""

    annotations: list[Annotation]
    truncated: bool
    """True if there may be more."""


class Finding(TypedDict):
    """Something that does not conform."""

    id: str
    name: str
    detail: str
    """What is wrong."""
    path: str
    """The page on which it can be mended."""


class FindingGroup(TypedDict):
    """Findings of one kind."""

    kind: str
    title: str
    total: int
    examples: list[Finding]
    """The first of them."""


class Conformance(TypedDict):
    """What does not conform in a vocabulary."""

    vocabulary: str
    records: int
    """How many were checked: the published ones."""
    total: int
    items: list[FindingGroup]


class FieldError(TypedDict):
    """Problem with one field."""

    pointer: str
    """A JSON pointer to the field."""
    detail: str


class Problem(TypedDict):
    """Error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    """For people."""
    errors: NotRequired[list[FieldError]]
    """422: every wrong field at once."""
    replaced_by: NotRequired[str | None]
    """410: the record to use instead."""
    merged_into: NotRequired[str]
    """308, 409: the record that it was merged into."""
    version: NotRequired[int]
    """412: the version that the record has."""
    record: NotRequired[dict[str, Any]]
    """412: the record as it is."""
    candidates: NotRequired[list[Candidate]]
    """300: the records that the id may mean."""
    id: NotRequired[str]
    """308: the record that has the id as an alternative one."""
    conflicts: NotRequired[list[FieldConflict]]
    """409: where a record has moved on under a proposal."""
