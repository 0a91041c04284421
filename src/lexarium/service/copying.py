"""Moving a catalogue to another database."""

from lexarium.domain.progress import Progress
from lexarium.service.checking import Findings, check
from lexarium.store.copying import Copied, copy_all
from lexarium.store.database import Database


def copy(source: Database, target: Database, told: Progress) -> tuple[Copied, Findings]:
    """Take everything across: what was taken, and what a check of it finds.

    Raises `Conflict`, and keeps nothing, where the target holds anything or the source is written to meanwhile.
    """
    copied = copy_all(source, target, told, at_rest=True)
    return copied, check(target)
