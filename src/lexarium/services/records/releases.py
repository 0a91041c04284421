"""Named releases of the catalogue."""

import re

from lexarium.domain.errors import Conflict
from lexarium.domain.release import Release
from lexarium.domain.timestamps import now_ms
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.not_found import find_or_raise
from lexarium.store import releases
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def validate_release_name(name: str) -> str:
    """Return a valid name of a release; raise ValueError."""
    if not NAME_PATTERN.fullmatch(name):
        raise ValueError("should be up to 100 letters, digits, dots, hyphens and underscores, such as 2026.1.")
    return name


def create_release(transaction: Transaction, caller: Caller, name: str, note: str) -> Release:
    """Name the current revision; raise Conflict if the name is taken."""
    caller.require(Permission.PUBLISH)
    if releases.find(transaction.flush(), name):
        raise Conflict(f"There is a release {name!r} already.")
    release = Release(name, transaction.revision, note, caller.account.id, now_ms())
    releases.add(transaction, release)
    return release


def get_release(snapshot: Snapshot, name: str) -> Release:
    """Return the release with a name; raise NotFound."""
    return find_or_raise(lambda: releases.find(snapshot, name), name, f"There is no release {name!r}.")


def list_releases(snapshot: Snapshot) -> list[Release]:
    """Return all releases, the newest first."""
    return releases.list_all(snapshot)
