"""Releases: states of the catalogue that have a name."""

import re

from lexarium.domain.errors import Conflict, NotFound
from lexarium.domain.release import Release
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.timestamps import now_ms
from lexarium.services.access.permissions import Caller, Permission
from lexarium.store import releases
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def validate_release_name(name: str) -> str:
    """The name itself; raises `ValueError` where a release cannot have it."""
    if not NAME_PATTERN.fullmatch(name):
        raise ValueError("should be up to 100 letters, digits, dots, hyphens and underscores, such as 2026.1.")
    return name


def create_release(transaction: Transaction, caller: Caller, name: str, note: str) -> Release:
    """Name the present state. Raises `Conflict` where the name is taken."""
    caller.require(Permission.PUBLISH)
    if releases.find(transaction.connection, name):
        raise Conflict(f"There is a release {name!r} already.")
    release = Release(name, transaction.revision, note, caller.account.id, now_ms())
    releases.add(transaction, release)
    return release


def get_release(snapshot: Snapshot, name: str) -> Release:
    """The release of this name. Raises `NotFound` where there is none."""
    release = None if find_unstorable_char(name) else releases.find(snapshot, name)
    if release is None:
        raise NotFound(f"There is no release {name!r}.")
    return release


def list_releases(snapshot: Snapshot) -> list[Release]:
    """Every release."""
    return releases.list_all(snapshot)
