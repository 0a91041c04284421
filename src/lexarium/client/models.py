"""Types of the JSON that v1 responds with: plain dictionaries, shared by the server and its client.

The OpenAPI document is derived from these types; the text below a field is its description there.
"""

from typing import Any, Literal, NotRequired

from typing_extensions import TypeAliasType, TypedDict

Action = TypeAliasType("Action", Literal["create", "update", "retire", "merge", "revert"])
State = TypeAliasType("State", Literal["published", "retired", "merged"])
Decision = TypeAliasType("Decision", Literal["open", "accepted", "rejected", "withdrawn"])
CommentAction = TypeAliasType("CommentAction", Literal["open", "reply", "close", "reopen"])
Role = TypeAliasType("Role", Literal["none", "reader", "contributor", "curator", "admin"])
Origin = TypeAliasType("Origin", Literal["command-line", "sign-in", "session", "token", "unknown"])


class Alias(TypedDict):
    """Another name of a record."""

    text: str
    """Name."""
    lang: str
    """Language, as a BCP 47 tag."""
    scope: Literal["exact", "narrow", "broad", "related", "hidden"]
    """Relation to the name."""


class LocalizedText(TypedDict):
    """A name or a definition in a language."""

    text: str
    lang: str
    """Language, as a BCP 47 tag."""


class Note(LocalizedText):
    """A note about a record."""

    type: str
    """Name of its slot in the schema, else its predicate."""


class WriteWarning(TypedDict):
    """A warning about a write, which was done nevertheless."""

    field: str
    """What it is about: `name`, `names/0`, `aliases/0`, `state`."""
    detail: str
    id: str | None
    """The record of the same vocabulary that has that name, or nearly."""
    name: str | None
    """The name of that record."""


class Record(TypedDict):
    """A record."""

    id: str
    """ID, unique in its vocabulary."""
    iri: str
    """IRI: its own, else one that starts with the base of the vocabulary or of the service."""
    vocabulary: str
    """Slug of its vocabulary."""
    collection: str
    version: int
    """Version number; also its ETag."""
    state: State
    replaced_by: str | None
    """Replacement of a retired or merged record."""
    name: str
    """Name in the requested language, if available."""
    definition: str
    """Definition in the requested language, if available; may be empty."""
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
    """Source of the definition."""
    references: list[str]
    """Sources of the record, from any predicate."""
    relations: dict[str, list[str]]
    """Targets of its own relations, by relation."""
    mappings: dict[str, list[str]]
    """Relations to other vocabularies."""
    fields: dict[str, str | int | None]
    """Other fields declared by the schema for its collection."""
    statements: dict[str, Any]
    """Statements not declared by the schema, by predicate."""
    updated: str
    """When this version was written. UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""
    updated_by: str
    """Author of this version, `usr_…`."""
    warnings: NotRequired[list[WriteWarning]]
    """Warnings; in responses to writes."""
    # Which of these a record has depends on its collection.
    definition_text: NotRequired[str]
    description: NotRequired[str]
    alias: NotRequired[str]
    id_concept_class: NotRequired[str]
    id_protocol: NotRequired[str]


class RecordPage(TypedDict):
    """A page of records."""

    items: list[Record]
    next: str | None
    """Cursor of the next page; null if there is none."""
    total: int
    """Number of records on all pages."""


class Version(TypedDict):
    """A version of a record, as its history lists it."""

    version: int
    seq: int
    """Position of the change in the log."""
    at: str
    """UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""
    actor: str
    """Author of the change, `usr_…`."""
    action: Action
    state: State
    """State of the record after the change."""
    proposal: str | None
    """Accepted proposal, if any."""
    proposed_by: str | None
    """Author of that proposal, `usr_…`."""
    summary: str
    """What the author says about the change; may be empty."""


class History(TypedDict):
    """Versions of a record, newest first."""

    items: list[Version]


Difference = TypedDict("Difference", {"field": str, "from": Any, "to": Any})
Difference.__doc__ = "A field that two versions do not have alike."
Diff = TypedDict("Diff", {"from": int, "to": int, "items": list[Difference]})
Diff.__doc__ = "What differs between two versions."


class Related(TypedDict):
    """A record at the other end of a relation."""

    relation: str
    label: str
    """Label of the relation, from its source to its target."""
    direction: Literal["out", "in"]
    """`out`: the relation is this record's own."""
    id: str
    """ID; for a mapping, the IRI or CURIE."""
    name: str
    """Name; empty for a mapping."""
    vocabulary: str | None
    """Slug of its vocabulary; null for a mapping."""


class Relations(TypedDict):
    """The relations of a record, in both directions."""

    items: list[Related]


class Reached(TypedDict):
    """A record above or below another."""

    id: str
    name: str
    depth: int
    """Distance in steps."""


class Hierarchy(TypedDict):
    """Ancestors or descendants of a record, nearest first."""

    items: list[Reached]
    retired: list[Reached]
    """Retired records on the way."""


class Change(TypedDict):
    """A change of a record, as the feed and webhooks send it."""

    seq: int
    """Position in the log."""
    at: str
    """UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""
    actor: str
    """Author of the change, `usr_…`."""
    action: Action
    vocabulary: str
    collection: str
    id: str
    """ID of the record."""
    version: int
    """Version of the record after the change."""
    proposal: str | None
    """Accepted proposal, if any."""
    proposed_by: str | None
    """Author of that proposal, `usr_…`."""
    summary: str
    """What the author says about the change; may be empty."""
    record: Record
    """The record after the change."""


class Changes(TypedDict):
    """A page of changes, in order."""

    items: list[Change]
    next: int
    """Value of `since` for the next request."""


class BatchResult(TypedDict):
    """Result of one line of a batch."""

    id: str
    vocabulary: str
    version: int
    state: State
    warnings: NotRequired[list[WriteWarning]]
    """Warnings."""


class Proposal(TypedDict):
    """A proposed change."""

    id: str
    vocabulary: str
    collection: str
    record: str | None
    """ID of the record to change; null for a new one."""
    base_version: int | None
    """Version to change."""
    change: dict[str, Any]
    """Draft of a new record, or a merge patch of the draft of an existing one."""
    by: str
    """Author, `usr_…`."""
    at: str
    """UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""
    state: Decision
    decided_by: str | None
    decided_at: str | None
    summary: str
    """What the author says about the change; may be empty."""
    reason: str
    """What the curator says about the decision; may be empty."""
    amended: bool
    """Whether the curator has accepted it with other values."""
    warnings: NotRequired[list[WriteWarning]]
    """Warnings about identical or similar names; in the response to the author."""


class Comment(TypedDict):
    """A comment on a record."""

    id: str
    by: str
    """Author, `usr_…`."""
    at: str
    """UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""
    action: CommentAction
    text: str
    """Empty if its author was erased; may be empty where a thread was closed or reopened."""


class CommentThread(TypedDict):
    """Comments on a record that belong together, the oldest first."""

    id: str
    """ID of the first comment."""
    vocabulary: str
    record: str
    """ID of the record."""
    closed: bool
    comments: list[Comment]


class CommentThreadPage(TypedDict):
    """A page of threads, the newest first."""

    items: list[CommentThread]
    next: str | None
    """Value of `before` for the next request."""


class FieldConflict(TypedDict):
    """A field that the proposal changes and others have changed since."""

    field: str
    base: Any
    """Value when the change was proposed."""
    current: Any
    """Current value."""
    proposed: Any
    """Proposed value."""


class ProposalDetail(Proposal):
    """A proposal with its conflicts and its result."""

    conflicts: list[FieldConflict]
    version: int | None
    """Version created when it was accepted."""


class ProposalPage(TypedDict):
    """A page of proposals, oldest first."""

    items: list[Proposal]
    next: str | None
    """Value of `after` for the next page; null if there is none."""


class ReleaseFile(TypedDict):
    """A release as a file. It is rendered when it is first requested, and never changes after that."""

    format: str
    media_type: str
    url: str
    """Path of the file."""
    size: int | None
    """Size in bytes; null, like the next two, if not rendered yet."""
    sha256: str | None
    """Checksum in hexadecimal."""
    rendered: str | None
    """UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""


class Release(TypedDict):
    """A named revision of a vocabulary."""

    name: str
    vocabulary: str
    revision: int
    note: str
    by: str
    at: str
    """Time of the release. UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""
    files: list[ReleaseFile]
    """One file per format."""


class Releases(TypedDict):
    """Releases, newest first."""

    items: list[Release]


class Account(TypedDict):
    """An account."""

    id: str
    name: str
    """Name; the ID if the account is erased."""
    role: Role
    """Role in all vocabularies."""
    vocabulary_roles: dict[str, Role]
    """Additional roles in single vocabularies, by slug."""
    erased: bool


class Accounts(TypedDict):
    """Accounts, by name."""

    items: list[Account]


class Me(Account):
    """Account of the token."""

    token_role: Role
    """Role of this token."""


class Token(TypedDict):
    """A token, without its secret."""

    id: str
    account: str
    """Name of its account."""
    label: str
    role: Role
    created: str
    """UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""
    expires: str | None
    last_used: str | None
    """To the minute."""
    revoked: str | None
    origin: Origin
    """How it was created; `sign-in` for a session."""
    made_with: str | None
    """ID of the token that created it; revoked together with it."""


class TokenWithSecret(Token):
    """A new token."""

    token: str
    """The secret, shown only once: send it as `Authorization: Bearer …`."""


class Tokens(TypedDict):
    """Tokens, oldest first."""

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
    """Last change that was delivered or skipped."""
    created: str
    """UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""
    attempts: int
    """Failed attempts for the next change."""
    next_attempt: str | None
    failing_since: str | None
    disabled: str | None
    """Disabled since; null if enabled."""


class WebhookWithSecret(Webhook):
    """A webhook with a new secret."""

    secret: str
    """Secret that signs deliveries (Standard Webhooks), shown only once."""


class Webhooks(TypedDict):
    """Webhooks, oldest first."""

    items: list[Webhook]


class WebhookTest(TypedDict):
    """Result of a test delivery."""

    status: int | None
    """Status of the response; null if there was none."""
    error: str | None
    """Why it failed; null if it succeeded."""


class Delivery(WebhookTest):
    """One attempt to deliver a change."""

    seq: int
    """Position of the change in the log; 0 for a test."""
    at: str
    """UTC, without a zone: `YYYY-MM-DDThh:mm:ss`."""


class Deliveries(TypedDict):
    """Deliveries, newest first."""

    items: list[Delivery]


class VocabularyLink(TypedDict):
    """A vocabulary with a link to it."""

    slug: str
    title: str
    url: str


class Vocabulary(TypedDict):
    """Metadata, rules and counts of a vocabulary."""

    slug: str
    title: str
    description: str
    licence: str
    """Licence: an IRI or a short text; may be empty."""
    publisher: str
    base: str
    """Start of the IRIs of records that have none of their own."""
    languages: list[str]
    """Languages of its texts. The first applies to texts without a tag."""
    schema: str
    """Name of its schema."""
    prefixes: dict[str, str]
    """Namespaces of CURIEs, by prefix."""
    defines: list[str]
    """Prefixes whose IDs belong to it."""
    minting: str
    """Pattern of new IDs; empty for random IDs."""
    private: bool
    """Whether only accounts with a role in it may read it."""
    default: bool
    """Whether it is the default vocabulary."""
    valpha: bool
    """Whether v-alpha and paths without a vocabulary serve it."""
    removed: bool
    version: int
    """Version of its metadata and rules; its ETag starts with it."""
    counts: dict[str, int]
    """Number of published records, by collection."""


class Vocabularies(TypedDict):
    """Vocabularies, the default one first."""

    items: list[Vocabulary]


class Candidate(TypedDict):
    """A record with an ambiguous ID."""

    id: str
    vocabulary: str
    name: str
    url: str


class Service(TypedDict):
    """Contents of the service, and links."""

    service: str
    version: str
    revision: int
    """Current revision."""
    counts: dict[str, int]
    """Number of published records of the default vocabulary, by collection."""
    vocabularies: list[VocabularyLink]
    """Vocabularies that you may read, the default one first."""
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
    """Language of `text`; none for an ID."""
    kind: str
    """Tier of the match."""


class Hit(TypedDict):
    """A search hit."""

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
    """Explanation of the score, with `explain`."""


class SearchResults(TypedDict):
    """Search results, best first."""

    hits: list[Hit]
    total: int
    facets: dict[str, dict[str, int]]
    """Number of hits by vocabulary, collection, class, state and language of names."""
    class_names: dict[str, str]
    """Names of the classes in the facets, by ID."""
    did_you_mean: str | None
    partial: bool
    """Whether no record has all words. The hits are then the best partial matches."""
    nearest: list["NearestName"]
    """Records with similar names, if no record has all words."""


class NearestName(TypedDict):
    """A record whose name is similar to the query."""

    id: str
    name: str
    vocabulary: str


class Suggestion(TypedDict):
    """A completion of a prefix."""

    id: str
    name: str
    vocabulary: str
    collection: str
    text: str
    """Matching name or alias."""
    language: str | None
    """Language of `text`."""
    highlight: list[Span]
    """Parts of `text` that match the prefix."""


class Suggestions(TypedDict):
    """Best completions."""

    suggestions: list[Suggestion]


class Annotation(TypedDict):
    """A place in a text where a term is mentioned."""

    start: int
    """Start, in code points, like `end`."""
    end: int
    text: str
    """Text of the mention."""
    id: str
    name: str
    vocabulary: str
    collection: str


class Annotations(TypedDict):
    """Mentions in a text, in order; an ambiguous one is listed once per record."""

    annotations: list[Annotation]
    truncated: bool
    """Whether the list was cut off."""


class Finding(TypedDict):
    """A nonconforming record."""

    id: str
    name: str
    detail: str
    """Description of the problem."""
    path: str
    """Page to fix it on."""


class FindingGroup(TypedDict):
    """Findings of one kind."""

    kind: str
    title: str
    total: int
    examples: list[Finding]
    """First findings."""


class Conformance(TypedDict):
    """Conformance report of a vocabulary."""

    vocabulary: str
    records: int
    """Number of published records checked."""
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
    """Explanation for people."""
    errors: NotRequired[list[FieldError]]
    """422: all invalid fields."""
    replaced_by: NotRequired[str | None]
    """410: ID of the replacement."""
    merged_into: NotRequired[str]
    """308, 409: ID of the record that it was merged into."""
    version: NotRequired[int]
    """412: current version of the record."""
    record: NotRequired[dict[str, Any]]
    """412: current state of the record."""
    candidates: NotRequired[list[Candidate]]
    """300: records with this ID."""
    id: NotRequired[str]
    """308: ID of the record that has this alternative ID."""
    conflicts: NotRequired[list[FieldConflict]]
    """409: conflicts of a proposal."""
