"""Create, change, remove, restore and purge vocabularies. Each is a logged change of its head record."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lexarium.domain.change import Action, Change
from lexarium.domain.errors import Conflict, FieldProblem, InvalidInput, NotFound
from lexarium.domain.identifiers import MAIN_VOCABULARY, qualify_id
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, get_collection
from lexarium.domain.schema.model import Schema, SchemaClass
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.domain.statement import Statement, Text
from lexarium.domain.text.timestamps import now_ms
from lexarium.domain.vocabulary import (
    TITLE,
    VOCABULARIES,
    Vocabulary,
    check_values,
    get_default_vocabulary,
    parse_head_record,
    register_vocabularies,
    resolve_schema,
    update_head_record,
)
from lexarium.store import change_log, records, vocabularies
from lexarium.store.change_log import RecordWrite
from lexarium.store.maintenance import purge
from lexarium.store.maintenance.rerendering import rerender_records
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction


def get_vocabulary(slug: str, *, removed: bool = False) -> Vocabulary:
    """Return a vocabulary, also a removed one on request; raise NotFound, which names the others."""
    vocabulary = VOCABULARIES.get(slug)
    if vocabulary is None or (vocabulary.is_removed and not removed):
        known = [item.slug for item in VOCABULARIES.values() if not item.is_removed]
        raise NotFound(f"Vocabulary {slug!r} not found; available: {', '.join(known)}.")
    return vocabulary


def get_version(snapshot: Snapshot, slug: str) -> int:
    """Return the version of a head record: 0 for a main vocabulary that has none yet."""
    change = _find_head(snapshot, slug)
    return 0 if change is None else change.version


def create_vocabulary(transaction: Transaction, actor: str, slug: str, values: Mapping[str, Any]) -> Vocabulary:
    """Create a vocabulary; raise Conflict if there is one, removed or not, and InvalidInput."""
    if slug in VOCABULARIES:
        reason = "is removed; restore or purge it" if VOCABULARIES[slug].is_removed else "already exists"
        raise Conflict(f"The vocabulary {slug} {reason}.")
    checked = check_values(slug, {"title": slug, **values}, VOCABULARIES.values())
    return _save(transaction, actor, slug, checked)


def merge_head_statements(
    transaction: Transaction,
    actor: str,
    slug: str,
    merge: Callable[[tuple[Statement, ...]], tuple[Statement, ...]],
) -> Vocabulary:
    """Change the statements of a head record by a function. A title that is only the slug gives way to others."""
    placeholder = Statement(TITLE, Text(slug))

    def replace_statements(record: Record) -> Record:
        merged = replace(record, statements=merge(tuple(item for item in record.statements if item != placeholder)))
        return merged if merged.fields["name"] else merged.add_statements([placeholder])

    return _save(transaction, actor, slug, {}, edit=replace_statements)


def update_vocabulary(transaction: Transaction, actor: str, slug: str, values: Mapping[str, Any]) -> Vocabulary:
    """Change metadata or rules of a vocabulary; raise NotFound, InvalidInput, and Conflict if records forbid it."""
    vocabulary = get_vocabulary(slug)
    checked = check_values(slug, values, VOCABULARIES.values())
    if "schema" in checked:
        _require_fitting_schema(transaction.flush(), vocabulary, resolve_schema(checked["schema"]))
    for flag in ("default", "valpha"):
        if checked.get(flag):
            for other in VOCABULARIES.values():
                if other.slug != slug and other.to_values()[flag]:
                    _save(transaction, actor, other.slug, {flag: False})
    if checked.get("valpha"):
        _require_valpha_classes(vocabulary)
    after = _save(transaction, actor, slug, checked)
    if (after.schema_source, after.language) != (vocabulary.schema_source, vocabulary.language):
        _rerender_records(transaction, slug)
    return after


def remove_vocabulary(transaction: Transaction, actor: str, slug: str) -> Vocabulary:
    """Hide a vocabulary and its records until it is restored; raise NotFound, and Conflict for the default one."""
    get_vocabulary(slug)
    others = [item for item in VOCABULARIES.values() if not item.is_removed and item.slug != slug]
    if others and get_default_vocabulary().slug == slug:
        raise Conflict(f"{slug} is the default vocabulary. Choose another default first.")
    return _save(transaction, actor, slug, {}, RecordState.RETIRED, Action.RETIRE)


def restore_vocabulary(transaction: Transaction, actor: str, slug: str) -> Vocabulary:
    """Show a removed vocabulary again; raise NotFound, and Conflict if it is not removed."""
    if not get_vocabulary(slug, removed=True).is_removed:
        raise Conflict(f"The vocabulary {slug} is not removed.")
    return _save(transaction, actor, slug, {}, RecordState.PUBLISHED, Action.REVERT)


def purge_vocabulary(transaction: Transaction, slug: str) -> int:
    """Delete a removed vocabulary with the history of its records for good; return the number of its records."""
    require_removed(slug)
    count = purge.delete_vocabulary(transaction, slug)
    transaction.bump_vocabularies_revision()
    return count


def require_removed(slug: str) -> None:
    """Raise NotFound unless there is such a vocabulary, and Conflict unless it is removed."""
    if not get_vocabulary(slug, removed=True).is_removed:
        raise Conflict(f"The vocabulary {slug} is not removed. Remove it first; this can be undone.")


def count_records(snapshot: Snapshot) -> Counter[str]:
    """Return the number of published records of each vocabulary, by slug."""
    counts: Counter[str] = Counter()
    for name, count in vocabularies.count_records(snapshot).items():
        counts[get_collection(name).vocabulary] += count
    return counts


def count_by_collection(snapshot: Snapshot, vocabulary: Vocabulary) -> dict[str, int]:
    """Return the number of published records of each collection of a vocabulary, by its name there."""
    counts = vocabularies.count_records(snapshot)
    return {name: counts.get(qualify_name(vocabulary.slug, name), 0) for name in vocabulary.schema.collections}


def _find_head(snapshot: Snapshot, slug: str) -> Change | None:
    record_id = qualify_id("", slug)
    return change_log.find_latest(snapshot, [record_id]).get(record_id)


def _save(  # noqa: PLR0913, PLR0917 (a change, and what it does)
    transaction: Transaction,
    actor: str,
    slug: str,
    values: Mapping[str, Any],
    state: RecordState = RecordState.PUBLISHED,
    action: Action = Action.UPDATE,
    edit: Callable[[Record], Record] = lambda record: record,
) -> Vocabulary:
    before = _find_head(transaction.flush(), slug)
    current: Record | None = None if before is None else before.to_record()
    if before is None and slug == MAIN_VOCABULARY:
        values = {"title": VOCABULARIES[slug].title, **values}
    after = edit(replace(update_head_record(current, slug, values), state=state))
    if after != current:
        write = RecordWrite(after, before.version + 1 if before else 1, action if before else Action.CREATE)
        change_log.save_records(transaction, [write], actor=actor, at=now_ms())
        transaction.bump_vocabularies_revision()
    return parse_head_record(after)


def _rerender_records(transaction: Transaction, slug: str) -> None:
    """Store what the new schema or language makes of the records. The past is shown by the present schema too."""
    before = list(VOCABULARIES.values())
    register_vocabularies(vocabularies.list_vocabularies(transaction.flush()))
    try:
        rerender_records(transaction, COLLECTIONS.list_names(slug))
    except BaseException:
        register_vocabularies(before)
        raise


def _require_fitting_schema(snapshot: Snapshot, vocabulary: Vocabulary, schema: Schema) -> None:
    """Raise Conflict if a schema lacks a class that has records, or identifies its records by another slot."""
    problems = []
    for collection in vocabulary.collections:
        new_class, old_class = schema.collections.get(collection.local_name), collection.schema_class
        if new_class is not None and _name_identifier(new_class) == _name_identifier(old_class):
            continue
        count = records.count_in_collection(snapshot, collection.name)
        if count:
            what = "a different identifier" if new_class else "no such class"
            problems.append(f"{old_class.name} has {count:,} records, but the new schema has {what}")
    if problems:
        raise Conflict(f"The schema cannot be applied: {'; '.join(problems)}.")


def _name_identifier(schema_class: SchemaClass) -> str | None:
    return None if schema_class.identifier is None else schema_class.identifier.name


def _require_valpha_classes(vocabulary: Vocabulary) -> None:
    names = {collection.local_name for collection in vocabulary.collections if collection.in_valpha}
    missing = sorted({"concept", "task", "disorder"} - names)
    if missing:
        detail = f"has no class that v-alpha serves as {', '.join(missing)}."
        raise InvalidInput("v-alpha cannot serve this vocabulary.", [FieldProblem("schema", detail)])


def list_vocabularies(*, removed: bool = False) -> Sequence[Vocabulary]:
    """Return the vocabularies, the default one first, then by title; removed ones only on request."""
    default = get_default_vocabulary()
    shown = [item for item in VOCABULARIES.values() if removed or not item.is_removed]
    return sorted(shown, key=lambda item: (item.slug != default.slug, item.title.casefold(), item.slug))
