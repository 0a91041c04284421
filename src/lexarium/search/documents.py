"""Convert a record to a document of the search index."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, combinations
from typing import NamedTuple, Self
from zlib import crc32

from tantivy import Document, Filter, Index, Schema, SchemaBuilder, TextAnalyzerBuilder, Tokenizer

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection
from lexarium.domain.schema.predicates import SlotRole
from lexarium.domain.statement import Text
from lexarium.domain.text.languages import get_primary_subtag
from lexarium.search.analysis.acronyms import find_abbreviation, list_acronyms
from lexarium.search.analysis.folding import MAX_WORD_CHARS, fold, split_text
from lexarium.search.analysis.languages import STEMMED_LANGUAGES, get_stop_words, stem_words

# Raise this when a record gives another document than before: every index is then rebuilt.
INDEX_FORMAT = 10

# Marks the end of a whole word among the prefixes of words.
WORD_END = "$"
# Marks a record with labels in more languages than its group names: there would be too many groups.
MANY_LANGUAGES = "*"
_MAX_GROUP_LANGUAGES = 3
# Separates the stored labels. A label that contains it is shown on one line.
LABEL_SEPARATOR = "\n"
# Between collection, languages and class in the terms that facets are counted by. One aggregation takes half the time
# of two, and a field with several values five times that of one with a single value.
GROUP_SEPARATOR = "\x1f"
# Between the languages of a group. A group without languages has labels only in that of its collection.
LANGUAGE_SEPARATOR = " "

# Terms begin with the partition of their record. That of published records of the default collections is empty, so
# that the usual search needs no filter: one that nearly every record passes costs more than the search itself.
# Indexed and typed text never contains these characters.
DEFAULT_PARTITION, OTHER_PARTITION, UNPUBLISHED_PARTITION = "", "\x01", "\x02"
PARTITIONS = (DEFAULT_PARTITION, OTHER_PARTITION, UNPUBLISHED_PARTITION)

# Placeholder of a stop word among the stems of a text, so that the others keep their positions.
_STOP_WORD = "-"
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
    # Languages of names and aliases; MANY_LANGUAGES too if the group does not name them.
    builder.add_text_field("language", fast=True, tokenizer_name="raw", index_option="basic")
    for texts in ("labels", "languages"):
        builder.add_text_field(texts, stored=True, tokenizer_name="nothing", index_option="basic")
    for label in ("name", "alias", "acronym"):
        builder.add_text_field(f"{label}_key", tokenizer_name="raw", index_option="basic")
    # `label` is name and aliases together: one posting list instead of two to merge.
    for label in ("name", "alias", "label"):
        builder.add_text_field(f"{label}_grams", tokenizer_name="grams", index_option="basic")
    for label in INITIALS_FIELDS:
        builder.add_text_field(f"{label}_pairs", tokenizer_name="words", index_option="basic")
    builder.add_text_field("first_grams", tokenizer_name="grams", index_option="basic")
    builder.add_text_field("words", tokenizer_name="words", index_option="position")
    # Stems of all words, and the languages that they were stemmed in.
    builder.add_text_field("text", tokenizer_name="prose", index_option="position")
    builder.add_text_field("stemmed", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("position", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


def register_tokenizers(index: Index) -> None:
    """Register our tokenizers with an index. Needed each time one is opened."""
    stop_terms = [partition + _STOP_WORD for partition in PARTITIONS]
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
    texts = [text for _, text in list_texts(record)]
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
    add("class", record.class_id)
    _add_labels(document, record, labels)
    _add_group(document, record, labels)
    label_forms = [label.word_forms for label in folded]
    name_forms = dict.fromkeys(chain.from_iterable(label_forms[: len(names)]))
    alias_forms = dict.fromkeys(chain.from_iterable(label_forms[len(names) :]))
    forms = dict.fromkeys([*name_forms, *alias_forms])
    add_terms("name_grams", name_forms, WORD_END)
    add_terms("alias_grams", alias_forms, WORD_END)
    add_terms("label_grams", forms, WORD_END)
    add_terms("first_grams", dict.fromkeys(form for name in names for form in name.first_word_forms), WORD_END)
    name_initials = join_terms(build_initials(name_forms))
    add("name_pairs", name_initials)
    add("label_pairs", join_terms(build_initials(forms)) if aliases else name_initials)
    for field, items in (("name_key", names), ("alias_key", aliases)):
        add_terms(field, filter(None, dict.fromkeys(key for item in items for key in (item.key, item.number_key))))
    acronyms = [
        acronym
        for item, label in zip(folded, labels, strict=True)
        for acronym in list_acronyms(label.text, label.language, item)
    ]
    acronyms += [find_abbreviation(text.text) for text in texts]
    add_terms("acronym_key", filter(None, dict.fromkeys(acronyms)))
    for label in folded:
        add("words", join_terms(label.words))
    stemmed = [StemmedText.build(*split_text(text.text), text.lang) for text in texts]
    stemmed += [StemmedText.build([], item, tag) for item, (_, tag, _) in zip(label_forms, labels, strict=True)]
    for stemmed_text in stemmed:
        if stemmed_text.stems:
            add("text", join_terms(stemmed_text.stems))
    add("text", join_terms(dict.fromkeys(form for item in stemmed for form in item.further_stems)))
    for language in {item.language for item in stemmed}.intersection(STEMMED_LANGUAGES):
        add("stemmed", language)
    return document


class StemmedText(NamedTuple):
    """The stems of a text in its language."""

    language: str
    # In order, with a placeholder for each stop word.
    stems: Sequence[str]
    # Of forms of words that have no position.
    further_stems: Sequence[str]

    @classmethod
    def build(cls, words: Sequence[str], further_forms: Sequence[str], tag: str) -> Self:
        """Stem folded words in the language of a tag."""
        language, stop_words = get_primary_subtag(tag), get_stop_words((tag,))
        significant = [_STOP_WORD if word in stop_words else word for word in words]
        return cls(language, [*stem_words(significant, language)], [*stem_words(further_forms, language)])


def _add_labels(document: Document, record: Record, labels: Iterable[Label]) -> None:
    """Add the labels of a record as they are stored."""
    stored = store_labels(record)
    document.add_text("labels", stored.labels)
    if stored.languages:
        document.add_text("languages", stored.languages)


def _add_group(document: Document, record: Record, labels: Iterable[Label]) -> None:
    """Add the languages of a record, and its group."""
    languages = sorted({label.language.lower() for label in labels})
    group = LANGUAGE_SEPARATOR.join(languages)
    if languages == [record.collection.language.lower()]:
        group = ""
    elif len(languages) > _MAX_GROUP_LANGUAGES:
        group = MANY_LANGUAGES
        languages.append(MANY_LANGUAGES)
    for language in languages:
        document.add_text("language", language)
    document.add_text("group", GROUP_SEPARATOR.join([record.collection.name, group, get_local_id(record.class_id)]))


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


def list_texts(record: Record) -> list[tuple[SlotRole, Text]]:
    """Return the definitions and notes of a record in all languages, each with its language; the definitions first."""
    roles = _list_text_predicates(record.collection)
    language = record.collection.language
    texts = [
        (roles[predicate], value if value.lang else value._replace(lang=language))
        for predicate, value, _ in record.own_statements
        if predicate in roles and isinstance(value, Text)
    ]
    return sorted(texts, key=lambda text: text[0])  # in the order of the alphabet


@lru_cache(1_000)
def _list_text_predicates(collection: Collection) -> dict[str, SlotRole]:
    slots_by_role = collection.schema_class.slots_by_role
    return {
        slot.predicate: role for role in (SlotRole.NOTE, SlotRole.DEFINITION) for slot in slots_by_role.get(role, ())
    }


def build_initials(words: Iterable[str]) -> list[str]:
    """Return the pairs of initials of two words: one letter and one letter, sorted, or one letter and two.

    Only ASCII, to limit their number.
    """
    starts = {word[:2] for word in words}
    letters = sorted({start[0] for start in starts if start[0].isascii()})
    bigrams = [start for start in starts if len(start) == 2 and start.isascii()]
    pairs = [first + second for first, second in combinations(letters, 2)]
    return pairs + [letter + start for start in bigrams for letter in letters if letter != start[0]]
