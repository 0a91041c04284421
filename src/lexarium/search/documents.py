"""Convert a record to a document of the search index."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple
from zlib import crc32

from tantivy import Document, Filter, Index, Schema, SchemaBuilder, TextAnalyzerBuilder, Tokenizer

from lexarium.domain.identifiers import qualify_id
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection
from lexarium.domain.schema.predicates import SlotRole
from lexarium.domain.statement import Text
from lexarium.search.analysis.folding import MAX_WORD_CHARS, fold, stem_words
from lexarium.search.analysis.plurals import singularize

# Raise this when a record gives another document than before: every index is then rebuilt.
INDEX_FORMAT = 6

# Marks the end of a whole word among the prefixes of words.
WORD_END = "$"
# Separates the stored labels. A label that contains it is shown on one line.
LABEL_SEPARATOR = "\n"
# Between collection and class in the terms that facets are counted by. One aggregation takes half the time of two.
GROUP_SEPARATOR = "\x1f"

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
    builder.add_text_field("collection", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("class", tokenizer_name="raw", index_option="basic")
    for facet in ("group", "state"):
        builder.add_text_field(facet, fast=True, stored=facet == "state", tokenizer_name="raw", index_option="basic")
    for texts in ("labels", "languages"):
        builder.add_text_field(texts, stored=True, tokenizer_name="nothing", index_option="basic")
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


class Label(NamedTuple):
    """A name or alias of a record."""

    text: str
    language: str
    is_name: bool = False


class StoredLabels(NamedTuple):
    """The labels of a record as its document stores them."""

    labels: str
    # The number of names, then the language of each label. Empty: one name, and all in the vocabulary's language.
    languages: str

    def parse(self, language: str) -> list[Label]:
        """Return the labels, given the language of their vocabulary."""
        texts = self.labels.split(LABEL_SEPARATOR)
        if not self.languages:
            return [Label(text, language, not index) for index, text in enumerate(texts)]
        names, *languages = self.languages.split(LABEL_SEPARATOR)
        name_count = int(names)
        labels = zip(texts, languages, strict=True)
        return [Label(text, tag, index < name_count) for index, (text, tag) in enumerate(labels)]


def store_labels(record: Record) -> StoredLabels:
    """Return the labels of a record as its document stores them."""
    labels = list_labels(record)
    texts = LABEL_SEPARATOR.join(label.text.replace(LABEL_SEPARATOR, " ") for label in labels)
    name_count = sum(label.is_name for label in labels)
    if name_count == 1 and all(label.language == record.collection.language for label in labels):
        return StoredLabels(texts, "")
    return StoredLabels(texts, LABEL_SEPARATOR.join([str(name_count), *(label.language for label in labels)]))


def build_document(record: Record, version: int) -> Document:
    """Build the document of a version of a record."""
    labels = list_labels(record)
    folded = [fold(label.text) for label in labels]
    names = [label for label, (_, _, is_name) in zip(folded, labels, strict=True) if is_name]
    aliases = folded[len(names) :]
    definitions = [stem_words(definition.text) for definition in list_definitions(record)]
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
    class_id = record.fields.get("id_concept_class", "")
    add("class", qualify_id(record.collection.vocabulary, class_id) if class_id else "")
    add("group", f"{record.collection.name}{GROUP_SEPARATOR}{class_id}")
    stored = store_labels(record)
    add("labels", stored.labels)
    if stored.languages:
        add("languages", stored.languages)
    name_forms = dict.fromkeys(form for name in names for form in name.word_forms)
    alias_forms = dict.fromkeys(form for alias in aliases for form in alias.word_forms)
    forms = dict.fromkeys([*name_forms, *alias_forms])
    add_terms("name_grams", name_forms, WORD_END)
    add_terms("alias_grams", alias_forms, WORD_END)
    add_terms("label_grams", forms, WORD_END)
    add_terms("first_grams", dict.fromkeys(form for name in names for form in name.first_word_forms), WORD_END)
    name_initials = join_terms(build_initials(name_forms))
    add("name_pairs", name_initials)
    add("label_pairs", join_terms(build_initials(forms)) if aliases else name_initials)
    add_terms("name_key", filter(None, dict.fromkeys(name.key for name in names)))
    add_terms("alias_key", filter(None, (alias.key for alias in aliases)))
    for label in folded:
        add("words", join_terms(label.words))
    for stems, _ in definitions:
        add("text", join_terms(stems))
    compounds = (compound for _, compounds in definitions for compound in compounds)
    add("text", join_terms(dict.fromkeys([*map(singularize, forms), *compounds])))
    return document


def list_identifiers(record: Record) -> Iterator[str]:
    """Yield the id of a record, the id with the code of its source, its IRI and alternative ids, and its mappings."""
    yield record.local_id
    source_code = record.fields.get("id_protocol")
    if source_code:
        yield f"{source_code}:{record.local_id.partition('_')[2]}"
    yield from record.alternative_ids
    for relation in record.relations:
        if RELATION_TYPES[relation.relation].is_mapping:
            yield relation.target


def list_labels(record: Record) -> list[Label]:
    """Return the name that is shown by default, the names in other languages, and the aliases."""
    shown: str = record.fields["name"]
    language = record.collection.language
    names = {language: shown}
    if record.translated_names:
        names = _list_names(record)
        if names.get(language) != shown:
            language = next((tag for tag, text in names.items() if text == shown), language)
    labels = [Label(shown, language, True)]
    labels += [Label(text, tag, True) for tag, text in names.items() if tag != language]
    return labels + [Label(alias.text, alias.lang) for alias in record.aliases]


def _list_names(record: Record) -> dict[str, str]:
    """Return the names of a record by language."""
    names: dict[str, str] = {}
    for predicate, value, _ in record.own_statements:
        if predicate in record.collection.name_predicates and isinstance(value, Text):
            names.setdefault(value.lang or record.collection.language, value.text)
    return names


def list_definitions(record: Record) -> list[Text]:
    """Return the definitions of a record in all languages, each with its language."""
    predicates = _list_definition_predicates(record.collection)
    language = record.collection.language
    return [
        value if value.lang else value._replace(lang=language)
        for predicate, value, _ in record.own_statements
        if predicate in predicates and isinstance(value, Text)
    ]


@lru_cache(1_000)
def _list_definition_predicates(collection: Collection) -> frozenset[str]:
    slots = collection.schema_class.slots_by_role.get(SlotRole.DEFINITION, ())
    return frozenset(slot.predicate for slot in slots)


def build_initials(words: Iterable[str]) -> list[str]:
    """Return the pairs of initials of two words: one letter and one letter, sorted, or one letter and two.

    Only ASCII, to limit their number.
    """
    starts = {word[:2] for word in words}
    letters = sorted({start[0] for start in starts if start[0].isascii()})
    bigrams = [start for start in starts if len(start) == 2 and start.isascii()]
    pairs = [first + second for first, second in combinations(letters, 2)]
    return pairs + [letter + start for start in bigrams for letter in letters if letter != start[0]]
