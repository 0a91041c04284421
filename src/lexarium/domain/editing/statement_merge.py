"""Compare and merge sets of statements."""

from collections.abc import Callable, Hashable, Iterable
from typing import Literal, NamedTuple, TypeAlias

from lexarium.domain.identity.prefixes import OBO_BASE
from lexarium.domain.statement import Reference, Statement, Value, drop_tag, normalize

# Side whose value wins a conflict.
ConflictPreference = Literal["theirs", "ours"]

# Return the key of the group in which a record has one value at a time, such as a name in a language; None for a
# statement that stands beside others, such as an alias.
GroupKey: TypeAlias = Callable[[Statement], Hashable | None]


class StatementDiff(NamedTuple):
    """Statements that one set has and the other lacks."""

    removed: tuple[Statement, ...]
    added: tuple[Statement, ...]


def diff_statements(before: Iterable[Statement], after: Iterable[Statement]) -> StatementDiff:
    """Return what was removed and added."""
    before, after = tuple(before), tuple(after)
    old, new = frozenset(before), frozenset(after)
    return StatementDiff(
        tuple(statement for statement in before if statement not in new),
        tuple(statement for statement in after if statement not in old),
    )


def match_statements(current: Iterable[Statement], stated: Iterable[Statement], language: str) -> list[Statement]:
    """Return what a file states in the form that a record has it in already.

    A statement without qualifiers matches those of the same value, with their qualifiers. A text without a tag is
    one in the default language.
    """
    by_value: dict[tuple[str, Value], list[Statement]] = {}
    for item in current:
        by_value.setdefault((item.predicate, drop_tag(item.value, language)), []).append(item)
    matched: list[Statement] = []
    for item in stated:
        same = [] if item.qualifiers else by_value.get((item.predicate, drop_tag(item.value, language)), [])
        matched += [other for other in same if other.value == item.value] or same or [item]
    return matched


def find_extended(current: Iterable[Statement], stated: Iterable[Statement]) -> list[Statement]:
    """Return the statements to which others only add qualifiers."""
    extensions: dict[tuple[str, Value], list[frozenset[Statement]]] = {}
    for item in stated:
        extensions.setdefault(item[:2], []).append(frozenset(item.qualifiers))
    return [
        item
        for item in current
        if any(qualifiers > frozenset(item.qualifiers) for qualifiers in extensions.get(item[:2], ()))
    ]


class MergeConflict(NamedTuple):
    """Values of one group that both sides have changed."""

    ours: tuple[Statement, ...]
    theirs: tuple[Statement, ...]


class MergedStatements(NamedTuple):
    """Result of a three-way merge."""

    statements: tuple[Statement, ...]
    conflicts: tuple[MergeConflict, ...]


def merge_statements(
    base: Iterable[Statement],
    ours: Iterable[Statement],
    theirs: Iterable[Statement],
    group_key: GroupKey,
    prefer: ConflictPreference | None = None,
) -> MergedStatements:
    """Apply what changed between a base and their edition to ours.

    Only what the base had is removed. Groups that both sides have changed differently are conflicts: ours stays,
    unless theirs is preferred; with a preference they are not reported.
    """
    ours = tuple(ours)
    base_groups, our_groups, their_groups = (_group(statements, group_key) for statements in (base, ours, theirs))
    removed: set[Statement] = set()
    added: list[Statement] = []
    conflicts: list[MergeConflict] = []
    for key in dict.fromkeys((*base_groups, *their_groups)):
        before, mine, new = (groups.get(key, {}) for groups in (base_groups, our_groups, their_groups))
        if new.keys() == before.keys():
            continue
        is_single = key is not None
        if is_single and mine.keys() not in (before.keys(), new.keys()):
            if prefer is None:
                conflicts.append(MergeConflict(tuple(mine), tuple(new)))
            if prefer != "theirs":
                continue
            removed |= mine.keys() - new.keys()
        removed |= before.keys() - new.keys()
        added += (statement for statement in new if statement not in before or is_single)
    kept = [statement for statement in ours if statement not in removed]
    # Predicates stay where they were.
    order = {
        predicate: place for place, predicate in enumerate(dict.fromkeys(item.predicate for item in (*ours, *added)))
    }
    return MergedStatements(normalize(sorted(kept + added, key=lambda item: order[item.predicate])), tuple(conflicts))


def align_statements(
    statements: Iterable[Statement], known: Iterable[Statement], language: str
) -> tuple[Statement, ...]:
    """Return statements as known ones that say the same have them.

    A text without a language is one in `language`, and an id is the end of its IRI in OBO.
    """
    by_key = {_simplify(statement, language): statement for statement in known}
    return tuple(by_key.get(_simplify(statement, language), statement) for statement in statements)


def _simplify(statement: Statement, language: str) -> Statement:
    value = drop_tag(statement.value, language)
    if isinstance(value, Reference) and value.target.startswith(OBO_BASE):
        prefix, underscore, local = value.target.removeprefix(OBO_BASE).rpartition("_")
        if "#" in value.target:
            value = Reference(value.target.rpartition("#")[2])
        elif underscore:
            value = Reference(f"{prefix}:{local}")
    qualifiers = frozenset(_simplify(item, language) for item in statement.qualifiers)
    return Statement(statement.predicate, value, tuple(sorted(qualifiers, key=repr)))


def _group(statements: Iterable[Statement], group_key: GroupKey) -> dict[Hashable | None, dict[Statement, None]]:
    groups: dict[Hashable | None, dict[Statement, None]] = {}
    for statement in statements:
        groups.setdefault(group_key(statement), {})[statement] = None
    return groups
