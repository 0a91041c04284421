"""Releases: states of the catalogue that have a name."""

import re

from lexarium.domain.errors import Conflict, NotFound
from lexarium.domain.stamps import now
from lexarium.domain.text import unstorable
from lexarium.service.access import Caller, Deed
from lexarium.store import releases
from lexarium.store.backend import Snapshot
from lexarium.store.releases import Release
from lexarium.store.transaction import Transaction

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def checked_name(name: str) -> str:
    """The name itself; raises `ValueError` where a release cannot have it."""
    if not NAME.fullmatch(name):
        raise ValueError("should be up to 100 letters, digits, dots, hyphens and underscores, such as 2026.1.")
    return name


def name_present(transaction: Transaction, caller: Caller, name: str, note: str) -> Release:
    """Name the present state. Raises `Conflict` where the name is taken."""
    caller.require(Deed.PUBLISH)
    if releases.find(transaction.connection, name):
        raise Conflict(f"There is a release {name!r} already.")
    release = Release(name, transaction.revision, note, caller.account.id, now())
    releases.add(transaction, release)
    return release


def find(snapshot: Snapshot, name: str) -> Release:
    """The release of this name. Raises `NotFound` where there is none."""
    found = None if unstorable(name) else releases.find(snapshot, name)
    if found is None:
        raise NotFound(f"There is no release {name!r}.")
    return found


def newest_first(snapshot: Snapshot) -> list[Release]:
    """Every release."""
    return releases.all_releases(snapshot)
