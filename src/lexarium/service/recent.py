"""What has changed of late, as people read it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lexarium.domain.changes import Change, Whole
from lexarium.domain.identifiers import SYSTEM_USER
from lexarium.store import accounts, versions
from lexarium.store.backend import Snapshot


@dataclass(frozen=True)
class Recent:
    """A change, its record as it is from then on, and who made it."""

    change: Change
    whole: Whole
    actor: str


def changes(snapshot: Snapshot, until: int, limit: int, since: int = 0) -> list[Recent]:
    """The changes up to a seq and after another, the newest first, at most so many."""
    start = max(since, until - limit)
    made = versions.since(snapshot, start, until - start)[::-1] if start < until else []
    names = people(snapshot, (each.actor for each in made))
    return [Recent(each, each.whole(), names[each.actor]) for each in made]


def people(snapshot: Snapshot, identifiers: Iterable[str]) -> dict[str, str]:
    """What these people are called, by id: by their account's name, else by their id."""
    found: dict[str, str] = {}
    for identifier in set(identifiers):
        if identifier == SYSTEM_USER:
            found[identifier] = "the system"
            continue
        account = accounts.find_account_by_id(snapshot, identifier)
        found[identifier] = identifier if account is None or account.erased else account.name
    return found


def earlier(snapshot: Snapshot, identifier: str, newest: int, limit: int) -> Sequence[Change]:
    """The versions of a record from one down, at most so many."""
    numbers = range(newest, max(0, newest - limit), -1)
    return [each for each in (versions.find_version(snapshot, identifier, number) for number in numbers) if each]
