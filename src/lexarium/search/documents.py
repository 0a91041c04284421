"""Convert a record to a document of the search index."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from zlib import crc32

from tantivy import Document, Filter, Index, Schema, SchemaBuilder, TextAnalyzerBuilder, Tokenizer

from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES
from lexarium.search.analysis.folding import MAX_WORD_CHARS, fold, stem_words
from lexarium.search.analysis.plurals import singularize

# Raise this when a record gives another document than before: every index is then rebuilt.
INDEX_FORMAT = 5

# Marks the end of a whole word among the prefixes of words.
WORD_END = "$"
# Separates the stored labels. A label that contains it is shown on one line.
LABEL_SEPARATOR = "\n"

# Terms begin with the partition of their record. That of published records of the default collections is empty, so
# that the usual search needs no filter: one that nearly every record passes costs more than the search itself.
# Indexed and typed text never contains these characters.
DEFAULT_PARTITION, OTHER_PARTITION, UNPUBLISHED_PARTITION = "", "\x01", "\x02"
PARTITIONS = (DEFAULT_PARTITION, OTHER_PARTITION, UNPUBLISHED_PARTITION)

# Labels that contain the stop words of a query rank first; definitions are not searched for them.
_STOP_WORDS_TEXT = """
    a about an and are as at be by can do does for from has have how in into is it its not of on or such than that the
    their then there these they this to was were what when where which who why will with
"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
_MAX_NAME_LENGTH = 1023
# Fields with pairs of initials. Few queries look for words in aliases alone.
INITIALS_FIELDS = ("name", "label")


def build_schema() -> Schema:
    """Return the fields of the index."""
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
    # `label` is name and aliases together: one posting list instead of two to merge.
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
    """Register our tokenizers with an index. Needed each time one is opened."""
    stop_terms = [partition + word for partition in PARTITIONS for word in STOP_WORDS]
    index.register_tokenizer("words", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
    prose = TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.custom_stopword(stop_terms))
    index.register_tokenizer("prose", prose.build())
    # Each word is a value of its own, so that its prefixes are those of the value.
    index.register_tokenizer("grams", TextAnalyzerBuilder(Tokenizer.ngram(1, MAX_WORD_CHARS + 2, True)).build())
    index.register_tokenizer("nothing", TextAnalyzerBuilder(Tokenizer.regex("^$")).build())


def join_labels(labels: Iterable[str]) -> str:
    """Join a name and aliases as a document stores them."""
    return LABEL_SEPARATOR.join(label.replace(LABEL_SEPARATOR, " ") for label in labels)


def build_document(record: Record, version: int) -> Document:
    """Build the document of a version of a record."""
    labels = list_labels(record)
    name, *aliases = map(fold, labels)
    stems, compounds = stem_words(record.definition)
    is_default_collection = record.collection.name in COLLECTIONS.searched
    partition = DEFAULT_PARTITION if is_default_collection else OTHER_PARTITION
    partition = partition if record.state == RecordState.PUBLISHED else UNPUBLISHED_PARTITION
    document = Document()
    add = document.add_text

    def add_terms(field: str, terms: Iterable[str], suffix: str = "") -> None:
        for term in terms:
            add(field, partition + term + suffix)

    def join_terms(words: Iterable[str]) -> str:
        return " ".join(partition + word for word in words) if partition else " ".join(words)

    add("record", record.id)
    add_terms("ids", map(str.casefold, list_identifiers(record)))
    add("scope", partition + WORD_END)
    document.add_unsigned("version", version)
    # Equal matches sort by collection and length of the name; the checksum makes the order stable.
    length = min(len(record.fields["name"]), _MAX_NAME_LENGTH)
    document.add_unsigned("order", ((not is_default_collection) << 10 | length) << 32 | crc32(record.id.encode()))
    add("collection", record.collection.name)
    add("state", record.state)
    add("class", record.fields.get("id_concept_class", ""))
    add("labels", join_labels(labels))
    name_forms = name.word_forms
    alias_forms = dict.fromkeys(form for alias in aliases for form in alias.word_forms)
    forms = dict.fromkeys([*name_forms, *alias_forms])
    add_terms("name_grams", name_forms, WORD_END)
    add_terms("alias_grams", alias_forms, WORD_END)
    add_terms("label_grams", forms, WORD_END)
    add_terms("first_grams", name.first_word_forms, WORD_END)
    name_initials = join_terms(build_initials(name_forms))
    add("name_pairs", name_initials)
    add("label_pairs", join_terms(build_initials(forms)) if aliases else name_initials)
    add_terms("name_key", filter(None, [name.key]))
    add_terms("alias_key", filter(None, (alias.key for alias in aliases)))
    for label in (name, *aliases):
        add("words", join_terms(label.words))
    add("text", join_terms(stems))
    add("text", join_terms(dict.fromkeys([*map(singularize, forms), *compounds])))
    return document


def list_identifiers(record: Record) -> Iterator[str]:
    """Yield the id of a record, the id with the code of its vocabulary, and the targets of its mappings."""
    yield record.id
    source_code = record.fields.get("id_protocol")
    if source_code:
        yield f"{source_code}:{record.id.partition('_')[2]}"
    for relation in record.relations:
        if RELATION_TYPES[relation.relation].is_mapping:
            yield relation.target


def list_labels(record: Record) -> list[str]:
    """Return the name and the texts of the aliases."""
    return [record.fields["name"], *(alias.text for alias in record.aliases)]


def build_initials(words: Iterable[str]) -> list[str]:
    """Return the pairs of initials of two words: one letter and one letter, sorted, or one letter and two.

    Only ASCII, to limit their number.
    """
    starts = {word[:2] for word in words}
    letters = sorted({start[0] for start in starts if start[0].isascii()})
    bigrams = [start for start in starts if len(start) == 2 and start.isascii()]
    pairs = [first + second for first, second in combinations(letters, 2)]
    return pairs + [letter + start for start in bigrams for letter in letters if letter != start[0]]
