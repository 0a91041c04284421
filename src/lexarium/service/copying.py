"""Moving a catalogue to another database."""

from lexarium.domain.progress import Progress
from lexarium.service.checking import Findings, check
from lexarium.store.backend import read_position
from lexarium.store.copying import Copied, copy_all
from lexarium.store.database import Database


def copy(source: Database, target: Database, told: Progress) -> tuple[Copied, Findings, bool]:
    """Take everything across: what was taken, what a check of it finds, and whether the source has moved on since."""
    copied = copy_all(source, target, told)
    found = check(target)
    with source.read() as snapshot:
        moved = read_position(snapshot) != copied.position
    return copied, found, moved
