"""A record as a document of the index: which fields there are, and what goes into each."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from zlib import crc32

from tantivy import Document, Filter, Index, Schema, SchemaBuilder, TextAnalyzerBuilder, Tokenizer

from lexarium.domain.labels import split_alias_texts
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import DEFAULT_SEARCH_COLLECTIONS
from lexarium.domain.schema.relation_types import RELATION_TYPES
from lexarium.search.analysis.folding import MAX_WORD_CHARS, fold, singularize_cached, stem_words

INDEX_FORMAT = 5
"""To be raised when the same record makes another document than before: then every index is made anew."""

WORD_END = "$"
"""Ends a whole word among the beginnings of words."""
LABEL_SEPARATOR = "\n"
"""Stands between the labels of a stored document: a name or alias that holds it is shown on one line."""

# Published records of the collections that are searched unless others are asked for have no mark, so that the
# usual search needs no filter: a filter that nearly every record passes costs more than the search itself.
# No text that is indexed or typed keeps such characters as the marks are.
DEFAULT_PARTITION, OTHER_PARTITION, UNPUBLISHED_PARTITION = "", "\x01", "\x02"
PARTITIONS = (DEFAULT_PARTITION, OTHER_PARTITION, UNPUBLISHED_PARTITION)

_STOP_WORDS_TEXT = """
    a about an and are as at be by can do does for from has have how in into is it its not of on or such than that the
    their then there these they this to was were what when where which who why will with
"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
"""Say little by themselves: names and aliases that have them go first, and definitions are not searched for them."""
_MAX_NAME_LENGTH = 1023
INITIALS_FIELDS = ("name", "label")
"""Of what there are pairs of first letters: in aliases alone few are looked for."""


def build_schema() -> Schema:
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
    for label in INITIALS_FIELDS:
        builder.add_text_field(f"{label}_pairs", tokenizer_name="words", index_option="basic")
    builder.add_text_field("first_grams", tokenizer_name="grams", index_option="basic")
    builder.add_text_field("words", tokenizer_name="words", index_option="position")
    builder.add_text_field("text", tokenizer_name="prose", index_option="position")
    builder.add_text_field("position", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


def register_tokenizers(index: Index) -> None:
    """Tell an index how its fields are taken apart. To be done each time one is opened."""
    stop_terms = [partition + word for partition in PARTITIONS for word in STOP_WORDS]
    index.register_tokenizer("words", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
    text_analyzer = TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.custom_stopword(stop_terms))
    index.register_tokenizer("prose", text_analyzer.build())
    # Each word is a value of its own, so that its beginnings are those of the value.
    index.register_tokenizer("grams", TextAnalyzerBuilder(Tokenizer.ngram(1, MAX_WORD_CHARS + 2, True)).build())
    index.register_tokenizer("nothing", TextAnalyzerBuilder(Tokenizer.regex("^$")).build())


def _get_partition(collection: str, state: RecordState) -> str:
    """The mark that the terms of a record begin with."""
    if state != RecordState.PUBLISHED:
        return UNPUBLISHED_PARTITION
    return DEFAULT_PARTITION if collection in DEFAULT_SEARCH_COLLECTIONS else OTHER_PARTITION


def join_labels(labels: Iterable[str]) -> str:
    """A name and aliases as a stored document has them."""
    return LABEL_SEPARATOR.join(label.replace(LABEL_SEPARATOR, " ") for label in labels)


def build_document(record: Record, version: int) -> Document:
    """A version of a record as a document."""
    fields = record.fields
    labels = list_labels(record)
    name, *aliases = map(fold, labels)
    stems, compounds = stem_words(record.definition)
    partition = _get_partition(record.collection.name, record.state)
    document = Document()
    add = document.add_text
    add("record", record.id)
    for identifier in list_identifiers(record):
        add("ids", partition + identifier.casefold())
    add("scope", partition + WORD_END)
    document.add_unsigned("version", version)
    document.add_unsigned("order", _sort_order(record))
    add("collection", record.collection.name)
    add("state", record.state)
    add("class", fields.get("id_concept_class", ""))
    add("labels", join_labels(labels))
    name_forms = name.word_forms
    for form in name_forms:
        add("name_grams", partition + form + WORD_END)
    name_initials = _add_partition(partition, build_initials(name_forms))
    add("name_pairs", name_initials)
    for form in name.first_word_forms:
        add("first_grams", partition + form + WORD_END)
    if name.key:
        add("name_key", partition + name.key)
    add("words", _add_partition(partition, name.words))
    for alias in aliases:
        if alias.key:
            add("alias_key", partition + alias.key)
        add("words", _add_partition(partition, alias.words))
    alias_forms = dict.fromkeys(form for alias in aliases for form in alias.word_forms)
    for form in alias_forms:
        add("alias_grams", partition + form + WORD_END)
    forms = dict.fromkeys([*name_forms, *alias_forms])
    for form in forms:
        add("label_grams", partition + form + WORD_END)
    add("label_pairs", _add_partition(partition, build_initials(forms)) if aliases else name_initials)
    add("text", _add_partition(partition, stems))
    add("text", _add_partition(partition, dict.fromkeys([*map(singularize_cached, forms), *compounds])))
    return document


def list_identifiers(record: Record) -> Iterator[str]:
    """What a record is known by: its identifier, the same with the code of its vocabulary, what it is mapped to."""
    yield record.id
    source_code = record.fields.get("id_protocol")
    if source_code:
        yield f"{source_code}:{record.id.partition('_')[2]}"
    for relation in record.relations:
        if RELATION_TYPES[relation.relation].target_collection is None:
            yield relation.target


def list_labels(record: Record) -> list[str]:
    """Its name and the texts of its aliases: quicker than by all that an alias is."""
    aliases = (
        split_alias_texts(record.fields.get("alias", ""))
        if record.stored_aliases is None
        else [alias.text for alias in record.stored_aliases]
    )
    return [record.fields["name"], *aliases]


def build_initials(words: Iterable[str]) -> list[str]:
    """Every letter, and other letter or two, that one of these words each begins with; of two letters in order.

    Only of ASCII, lest they become many.
    """
    starts = {word[:2] for word in words}
    letters = sorted({start[0] for start in starts if start[0].isascii()})
    bigrams = [start for start in starts if len(start) == 2 and start.isascii()]
    pairs = [first + second for first, second in combinations(letters, 2)]
    return pairs + [letter + start for start in bigrams for letter in letters if letter != start[0]]


def _sort_order(record: Record) -> int:
    """A number by which equal matches are told in the same order always: what is usually searched, the shorter name."""
    is_other_collection = record.collection.name not in DEFAULT_SEARCH_COLLECTIONS
    length = min(len(record.fields["name"]), _MAX_NAME_LENGTH)
    return (is_other_collection << 10 | length) << 32 | crc32(record.id.encode())


def _add_partition(partition: str, words: Iterable[str]) -> str:
    return " ".join(words) if partition == DEFAULT_PARTITION else " ".join(partition + word for word in words)
