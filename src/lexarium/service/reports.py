"""What an import tells of itself."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lexarium.domain.errors import ImportRefused, Problem

KEPT = 1_000
"""How many warnings and problems are kept word by word; past that they are only counted."""


@dataclass
class Notes:
    """Things to tell, the first of them word by word."""

    kept: list[Problem] = field(default_factory=list)
    count: int = 0

    def add(self, where: str, what: str) -> None:
        """Note something about a place."""
        self.count += 1
        if len(self.kept) < KEPT:
            self.kept.append(Problem(where, what))


@dataclass(frozen=True)
class Conflict:
    """A field that a file and people have both changed since the last import."""

    where: str
    record: str
    field: str
    ours: Any
    """What it is, and stays unless the file's is preferred."""
    theirs: Any


@dataclass
class Conflicts:
    """Conflicts, the first of them one by one."""

    kept: list[Conflict] = field(default_factory=list)
    count: int = 0

    def add(self, conflict: Conflict) -> None:
        """Note one."""
        self.count += 1
        if len(self.kept) < KEPT:
            self.kept.append(conflict)


@dataclass
class Report:
    """What an import did, or with `dry_run` would do."""

    dry_run: bool
    created: Counter[str] = field(default_factory=Counter)
    updated: Counter[str] = field(default_factory=Counter)
    retired: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    """Records that were left out, each with a warning."""
    relations_added: int = 0
    relations_removed: int = 0
    warnings: Notes = field(default_factory=Notes)
    conflicts: Conflicts = field(default_factory=Conflicts)

    @property
    def changed(self) -> bool:
        """Whether anything is other than before."""
        return bool(self.created or self.updated or self.retired or self.relations_added or self.relations_removed)


def refuse(problems: Notes) -> None:
    """Raise every problem there is."""
    if problems.count:
        count = "1 problem" if problems.count == 1 else f"{problems.count:,} problems"
        raise ImportRefused(f"Nothing was imported: {count}.", problems.kept)


def report_view(report: Report) -> dict[str, object]:
    """What an import did, for scripts."""
    return {
        "dry_run": report.dry_run,
        "changed": report.changed,
        "created": report.created,
        "updated": report.updated,
        "retired": report.retired,
        "unchanged": report.unchanged,
        "refused": report.refused,
        "relations_added": report.relations_added,
        "relations_removed": report.relations_removed,
        "conflict_count": report.conflicts.count,
        "conflicts": [asdict(each) for each in report.conflicts.kept],
        "warning_count": report.warnings.count,
        "warnings": notes_view(report.warnings.kept),
    }


def notes_view(problems: Sequence[Problem]) -> list[dict[str, str]]:
    """Warnings or problems, for scripts."""
    return [{"where": each.field, "what": each.detail} for each in problems]
