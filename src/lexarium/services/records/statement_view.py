"""Statements of a record as its page shows them: labels for predicates, names for ids, links where they are safe."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lexarium.domain.identifiers import qualify_id
from lexarium.domain.identity.prefixes import PrefixMap, expand, link_of, load_bundled
from lexarium.domain.identity.vocabulary_names import name_vocabulary
from lexarium.domain.record import ALIAS_SCOPES, SOURCE, TYPE, Record
from lexarium.domain.record_texts import list_language_texts
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.schema.model import Slot
from lexarium.domain.schema.predicates import SlotRole, expand_predicate
from lexarium.domain.statement import Node, Reference, Statement, Text
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.resources import OTHER_RESOURCE

# Shown in words beside the record.
_FLAG = "flag_for_curator"
# Shown with the definition, and beside the collection.
_OTHER_PLACES = frozenset({SOURCE, TYPE})
# Predicates that only the program needs, such as how a file was written.
_INTERNAL = "lexarium:"


@dataclass(frozen=True)
class ShownValue:
    """Value of a statement."""

    text: str
    lang: str = ""
    # Id of a record that the value names.
    record_id: str | None = None
    # Title of the vocabulary of that record, or of an identifier, if it is another one and known.
    vocabulary: str = ""
    # Address of a page elsewhere.
    link: str | None = None
    # Statements of a nested node.
    parts: Sequence["ShownStatements"] = ()
    qualifiers: Sequence["ShownStatements"] = ()


@dataclass(frozen=True)
class ShownStatements:
    """Statements with one predicate."""

    label: str
    values: Sequence[ShownValue]
    description: str = ""
    # Address of a predicate that no slot declares.
    link: str | None = None


@dataclass(frozen=True)
class OtherClass:
    """Class that a record has besides its collection."""

    label: str
    # None if the schema does not have the class.
    collection: str | None
    link: str | None


class StatementView:
    """View of the statements of one record."""

    def __init__(
        self,
        record: Record,
        names: Mapping[str, str],
        user_names: Mapping[str, str],
        elsewhere: Mapping[str, ShownValue] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Build the view with the names of the published records and of the users that the record refers to.

        Names are by id in the vocabulary of the record; `elsewhere` are records of others, by what means them.
        `labels` are those of predicates that no slot declares.
        """
        self._record = record
        self._names = names
        self._user_names = user_names
        self._elsewhere = elsewhere or {}
        self._labels = labels or {}
        self._prefixes = get_prefix_map(record.collection.vocabulary)
        self._shown_texts = {(item.field, item.lang, item.text) for item in list_language_texts(record)}

    def list_fields(self) -> list[ShownStatements]:
        """Return the declared fields that have a value and no other place on the page, in order of the schema."""
        groups = _group(self._record.statements)
        slots = self._record.collection.schema_class.slots.values()
        shown = [(slot, list(self._iter_field_values(slot, groups.get(slot.predicate, ())))) for slot in slots]
        return [ShownStatements(slot.label, values, slot.description) for slot, values in shown if values]

    def list_other_statements(self) -> list[ShownStatements]:
        """Return the statements that no slot declares, without those that are relations to records here."""
        declared = self._record.collection.schema_class.slots_by_predicate
        statements = [
            statement
            for statement in self._record.statements
            if statement.predicate not in declared
            and statement.predicate not in _OTHER_PLACES
            and statement.predicate not in ALIAS_SCOPES
            and not (isinstance(statement.value, Reference) and statement.value.target in self._names)
        ]
        return self._show_undeclared(statements)

    def list_mappings(self) -> list[ShownStatements]:
        """Return the references to other vocabularies, in order of the schema."""
        groups = _group(self._record.statements)
        slots = self._record.collection.schema_class.slots_by_role.get(SlotRole.MAPPING, ())
        return [
            ShownStatements(
                slot.label, [self._show_value(item, slot) for item in groups[slot.predicate]], slot.description
            )
            for slot in slots
            if slot.predicate in groups
        ]

    def _iter_field_values(self, slot: Slot, statements: Sequence[Statement]) -> Iterator[ShownValue]:
        """Yield the values that no other part of the page shows."""
        record = self._record
        if not slot.editable or slot.role in (SlotRole.ALIAS, SlotRole.MAPPING) or slot.name == _FLAG:
            return
        title = record.fields["name"] if slot.role is SlotRole.NAME else record.definition
        has_place = slot.role in (SlotRole.NAME, SlotRole.DEFINITION) and title
        for statement in statements:
            value = statement.value
            if isinstance(value, Text) and ((has_place and value.text == title) or self._is_shown_text(slot, value)):
                continue
            is_class = slot.name in record.collection.class_fields
            if isinstance(value, Reference) and (not is_class or value.target in self._names):
                continue
            yield self._show_value(statement, slot)

    def _is_shown_text(self, slot: Slot, value: Text) -> bool:
        """Return whether a name or definition is among those by language."""
        definition = self._record.collection.definition_field if slot.role is SlotRole.DEFINITION else None
        field = "name" if slot.role is SlotRole.NAME else definition
        return (field, value.lang or self._record.collection.language, value.text) in self._shown_texts

    def _show_undeclared(self, statements: Iterable[Statement]) -> list[ShownStatements]:
        return [
            ShownStatements(
                "other resources" if predicate == OTHER_RESOURCE else self._get_label(predicate),
                [self._show_value(item) for item in group],
                link=find_predicate_link(predicate),
            )
            for predicate, group in _group(statements).items()
            if predicate == OTHER_RESOURCE or not predicate.startswith(_INTERNAL)
        ]

    def _get_label(self, predicate: str) -> str:
        return self._labels.get(predicate) or self._prefixes.contract(predicate) or predicate

    def _show_value(self, statement: Statement, slot: Slot | None = None) -> ShownValue:
        value, qualifiers = statement.value, self._show_undeclared(statement.qualifiers)
        if isinstance(value, Node):
            parts = self._show_undeclared(value.statements)
            # The label of a blank node has no meaning outside of its file.
            iri = "" if value.iri.startswith("_:") else value.iri
            return ShownValue(iri, link=self._find_link(iri), parts=parts, qualifiers=qualifiers)
        text, is_id = value[0], isinstance(value, Reference) or (slot is not None and slot.id_prefix is not None)
        if is_id and text in self._names:
            record_id = qualify_id(self._record.collection.vocabulary, text)
            return ShownValue(self._names[text] or text, record_id=record_id, qualifiers=qualifiers)
        if isinstance(value, Reference):
            if text in self._elsewhere:
                return replace(self._elsewhere[text], qualifiers=qualifiers)
            name = name_vocabulary(text, self._prefixes) if slot and slot.role is SlotRole.MAPPING else ""
            return ShownValue(text, vocabulary=name, link=self._find_link(text), qualifiers=qualifiers)
        if slot is not None and slot.role is SlotRole.MAPPING:
            link = self._find_link(text)
            return ShownValue(text, vocabulary=name_vocabulary(text, self._prefixes), link=link, qualifiers=qualifiers)
        shown_text = self._user_names.get(text, text) if is_id else text
        return ShownValue(shown_text, value.lang, link=self._find_text_link(text, slot), qualifiers=qualifiers)

    def _find_link(self, identifier: str) -> str | None:
        return find_link(identifier, self._prefixes)

    def _find_text_link(self, text: str, slot: Slot | None) -> str | None:
        if slot is not None and slot.prefix is not None and any(map(str.isdigit, text)):
            return self._find_link(text) or self._find_link(f"{slot.prefix}:{text.strip()}")
        return self._find_link(text) if text.strip().lower().startswith(("http://", "https://")) else None


@lru_cache(maxsize=100)
def _build_prefix_map(prefixes: tuple[tuple[str, str], ...]) -> PrefixMap:
    return load_bundled().extend(dict(prefixes))


def get_prefix_map(slug: str) -> PrefixMap:
    """Return the prefixes of a vocabulary, with those that are common to all."""
    vocabulary = VOCABULARIES.get(slug)
    return _build_prefix_map(tuple(vocabulary.prefixes.items()) if vocabulary else ())


def list_other_classes(record: Record) -> list[OtherClass]:
    """Return the classes that a record has besides its collection."""
    targets = [statement.value[0] for statement in record.statements if statement.predicate == TYPE]
    vocabulary = record.collection.vocabulary
    classes = (_find_class(target, vocabulary) for target in targets if isinstance(target, str))
    return [item for item in classes if item.collection != record.collection.name]


def list_user_ids(record: Record) -> list[str]:
    """Return the ids in fields, most of which are those of users."""
    return sorted({record.fields[name] for name in record.collection.id_fields} - {""})


def find_link(identifier: str, prefixes: PrefixMap | None = None) -> str | None:
    """Return a safe address for an IRI, CURIE or DOI that is all of a text, or None."""
    is_single = len(identifier.strip().replace(": ", ":", 1).split()) == 1
    return link_of(identifier, prefixes) if is_single else None


def find_predicate_link(predicate: str) -> str | None:
    """Return the IRI of a predicate if it is a safe address, or None."""
    iri = expand_predicate(predicate)
    return link_of(f"iri:{expand(iri) or iri}")


def _find_class(target: str, vocabulary: str) -> OtherClass:
    for name in COLLECTIONS.list_names(vocabulary):
        collection = COLLECTIONS[name]
        schema_class = collection.schema_class
        if target in (collection.local_name, schema_class.name, schema_class.uri):
            return OtherClass(collection.label, name, None)
    return OtherClass(target, None, find_predicate_link(target))


def _group(statements: Iterable[Statement]) -> dict[str, list[Statement]]:
    groups: dict[str, list[Statement]] = {}
    for statement in statements:
        groups.setdefault(statement.predicate, []).append(statement)
    return groups
