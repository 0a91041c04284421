"""Parse mappings of columns and predicates to fields, as users write them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.schema.collections import MAIN_COLLECTIONS, MAIN_RELATION_TYPES

# What a column or predicate can be mapped to.
MAPPING_TARGETS: tuple[str, ...] = (
    *dict.fromkeys(name for collection in MAIN_COLLECTIONS.values() for name in collection.fields),
    *("collection", "aliases", "sources", "state", "replaced_by"),
    *MAIN_RELATION_TYPES,
)


def parse_mapping_options(options: Sequence[str], targets: Collection[str] | None = MAPPING_TARGETS) -> dict[str, str]:
    """Parse pairs `COLUMN=MEANING`, and files with one such pair per line; raise InvalidInput with all problems.

    A column without a meaning is skipped. If no targets are given, the reader of the file checks whether a meaning is
    known.
    """
    problems: list[FieldProblem] = []
    return parse_mapping_pairs(list(_iter_pairs(options, problems)), problems, targets)


def parse_mapping_pairs(
    pairs: Iterable[tuple[str, str]],
    former_problems: Iterable[FieldProblem] = (),
    targets: Collection[str] | None = MAPPING_TARGETS,
) -> dict[str, str]:
    """Parse pairs `COLUMN=MEANING`, each given with its location; raise InvalidInput with all problems."""
    column_mapping: dict[str, str] = {}
    problems = [*former_problems]
    for location, pair in pairs:
        # An IRI may contain other equals signs.
        column, equals, field = (part.strip() for part in pair.rpartition("="))
        if not equals or not column:
            problems.append(FieldProblem(location, "must be COLUMN=FIELD."))
        elif targets is not None and field and field not in targets:
            problems.append(_reject_target(location, field, targets))
        elif column_mapping.get(column, field) != field:
            problems.append(FieldProblem(location, f"{column} is already mapped to {column_mapping[column]}."))
        else:
            column_mapping[column] = field
    if problems:
        raise InvalidInput("Invalid column mapping.", problems)
    return column_mapping


def require_targets(column_mapping: Mapping[str, str]) -> None:
    """Raise InvalidInput if columns are mapped to anything but fields of the main vocabulary."""
    problems = [
        _reject_target(f"{column}={field}", field, MAPPING_TARGETS)
        for column, field in column_mapping.items()
        if field and field not in MAPPING_TARGETS
    ]
    if problems:
        raise InvalidInput("Invalid column mapping.", problems)


def rename_keys(document: Mapping[str, Any], column_mapping: Mapping[str, str]) -> dict[str, Any]:
    """Return an object with the fields that its keys mean, without those that are skipped."""
    return {name: value for key, value in document.items() if (name := column_mapping.get(key, key))}


def _reject_target(location: str, field: str, targets: Collection[str]) -> FieldProblem:
    return FieldProblem(location, f"{field!r} is not one of {', '.join(targets)}.")


def _iter_pairs(options: Sequence[str], problems: list[FieldProblem]) -> Iterator[tuple[str, str]]:
    for option in options:
        path = Path(option)
        try:
            lines = path.read_text("utf-8-sig").splitlines() if path.is_file() else None
        except (OSError, ValueError) as error:
            problems.append(FieldProblem(option, f"cannot be read: {error}"))
            continue
        if lines is None:
            yield option, option
            continue
        for number, line in enumerate(lines, 1):
            if line.strip() and line[:1] != "#":
                yield f"{path}, line {number}", line
