"""A record as a document of the index: which fields there are, and what goes into each."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from zlib import crc32

from tantivy import Document, Filter, Index, Schema, SchemaBuilder, TextAnalyzerBuilder, Tokenizer

from lexarium.domain.aliases import texts
from lexarium.domain.changes import State, Whole
from lexarium.domain.collections import SEARCHED
from lexarium.domain.relations import RELATIONS
from lexarium.search.folding import LONGEST_WORD, fold, singular_of, stems

FORMAT = 5
"""To be raised when the same record makes another document than before: then every index is made anew."""

END = "$"
"""Ends a whole word among the beginnings of words."""
SEPARATOR = "\n"
"""Stands between the labels of a stored document: a name or alias that holds it is shown on one line."""

# Published records of the collections that are searched unless others are asked for have no mark, so that the
# usual search needs no filter: a filter that nearly every record passes costs more than the search itself.
# No text that is indexed or typed keeps such characters as the marks are.
USUAL, UNUSUAL, GONE = "", "\x01", "\x02"
SCOPES = (USUAL, UNUSUAL, GONE)

_LITTLE = """
    a about an and are as at be by can do does for from has have how in into is it its not of on or such than that the
    their then there these they this to was were what when where which who why will with
"""
LITTLE_WORDS = frozenset(_LITTLE.split())
"""Say little by themselves: names and aliases that have them go first, and definitions are not searched for them."""
_LONGEST_NAME = 1023
PAIRED = ("name", "label")
"""Of what there are pairs of first letters: in aliases alone few are looked for."""


def schema() -> Schema:
    """The fields of the index."""
    builder = SchemaBuilder()
    builder.add_text_field("record", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("ids", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("scope", tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("version", stored=True)
    builder.add_unsigned_field("order", fast=True)
    for facet in ("collection", "class", "state"):
        builder.add_text_field(facet, fast=True, stored=facet != "class", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("labels", stored=True, tokenizer_name="nothing", index_option="basic")
    for label in ("name", "alias"):
        builder.add_text_field(f"{label}_key", tokenizer_name="raw", index_option="basic")
    # Of name and aliases together too: so all that begins so is one list, and not two to be merged.
    for label in ("name", "alias", "label"):
        builder.add_text_field(f"{label}_grams", tokenizer_name="grams", index_option="basic")
    for label in PAIRED:
        builder.add_text_field(f"{label}_pairs", tokenizer_name="words", index_option="basic")
    builder.add_text_field("first_grams", tokenizer_name="grams", index_option="basic")
    builder.add_text_field("words", tokenizer_name="words", index_option="position")
    builder.add_text_field("text", tokenizer_name="prose", index_option="position")
    builder.add_text_field("position", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


def register(index: Index) -> None:
    """Tell an index how its fields are taken apart. To be done each time one is opened."""
    little = [scope + word for scope in SCOPES for word in LITTLE_WORDS]
    index.register_tokenizer("words", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
    prose = TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.custom_stopword(little))
    index.register_tokenizer("prose", prose.build())
    # Each word is a value of its own, so that its beginnings are those of the value.
    index.register_tokenizer("grams", TextAnalyzerBuilder(Tokenizer.ngram(1, LONGEST_WORD + 2, True)).build())
    index.register_tokenizer("nothing", TextAnalyzerBuilder(Tokenizer.regex("^$")).build())


def scope_of(collection: str, state: State) -> str:
    """The mark that the terms of a record begin with."""
    if state != State.PUBLISHED:
        return GONE
    return USUAL if collection in SEARCHED else UNUSUAL


def shown_labels(labels: Iterable[str]) -> str:
    """A name and aliases as a stored document has them."""
    return SEPARATOR.join(label.replace(SEPARATOR, " ") for label in labels)


def document_of(whole: Whole, version: int) -> Document:
    """A version of a record as a document."""
    fields = whole.fields
    labels = labels_of(whole)
    name, *aliases = map(fold, labels)
    prose, compounds = stems(whole.definition)
    scope = scope_of(whole.collection.name, whole.state)
    document = Document()
    add = document.add_text
    add("record", whole.id)
    for identifier in identifiers_of(whole):
        add("ids", scope + identifier.casefold())
    add("scope", scope + END)
    document.add_unsigned("version", version)
    document.add_unsigned("order", _order(whole))
    add("collection", whole.collection.name)
    add("state", whole.state)
    add("class", fields.get("id_concept_class", ""))
    add("labels", shown_labels(labels))
    name_forms = name.forms
    for form in name_forms:
        add("name_grams", scope + form + END)
    name_pairs = _marked(scope, pairs_of(name_forms))
    add("name_pairs", name_pairs)
    for form in name.first_forms:
        add("first_grams", scope + form + END)
    if name.key:
        add("name_key", scope + name.key)
    add("words", _marked(scope, name.words))
    for alias in aliases:
        if alias.key:
            add("alias_key", scope + alias.key)
        add("words", _marked(scope, alias.words))
    alias_forms = dict.fromkeys(form for alias in aliases for form in alias.forms)
    for form in alias_forms:
        add("alias_grams", scope + form + END)
    forms = dict.fromkeys([*name_forms, *alias_forms])
    for form in forms:
        add("label_grams", scope + form + END)
    add("label_pairs", _marked(scope, pairs_of(forms)) if aliases else name_pairs)
    add("text", _marked(scope, prose))
    add("text", _marked(scope, dict.fromkeys([*map(singular_of, forms), *compounds])))
    return document


def identifiers_of(whole: Whole) -> Iterator[str]:
    """What a record is known by: its identifier, the same with the code of its vocabulary, what it is mapped to."""
    yield whole.id
    protocol = whole.fields.get("id_protocol")
    if protocol:
        yield f"{protocol}:{whole.id.partition('_')[2]}"
    for edge in whole.edges:
        if RELATIONS[edge.relation].target is None:
            yield edge.target


def labels_of(whole: Whole) -> list[str]:
    """Its name and the texts of its aliases: quicker than by all that an alias is."""
    aliases = texts(whole.fields.get("alias", "")) if whole.aliases is None else [each.text for each in whole.aliases]
    return [whole.fields["name"], *aliases]


def pairs_of(words: Iterable[str]) -> list[str]:
    """Every letter, and other letter or two, that one of these words each begins with; of two letters in order.

    Only of ASCII, lest they become many.
    """
    starts = {word[:2] for word in words}
    letters = sorted({start[0] for start in starts if start[0].isascii()})
    two = [start for start in starts if len(start) == 2 and start.isascii()]
    pairs = [first + second for first, second in combinations(letters, 2)]
    return pairs + [letter + start for start in two for letter in letters if letter != start[0]]


def _order(whole: Whole) -> int:
    """A number by which equal matches are told in the same order always: what is usually searched, the shorter name."""
    unusual = whole.collection.name not in SEARCHED
    length = min(len(whole.fields["name"]), _LONGEST_NAME)
    return (unusual << 10 | length) << 32 | crc32(whole.id.encode())


def _marked(scope: str, words: Iterable[str]) -> str:
    return " ".join(words) if scope == USUAL else " ".join(scope + word for word in words)
