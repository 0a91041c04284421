"""Named releases of vocabularies."""

import re

from lexarium.domain.errors import Conflict, NotFound
from lexarium.domain.identifiers import MAIN_VOCABULARY, qualify_id
from lexarium.domain.release import Release
from lexarium.domain.text.timestamps import now_ms
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


def create_release(
    transaction: Transaction, caller: Caller, name: str, note: str, vocabulary: str = MAIN_VOCABULARY
) -> Release:
    """Name the current revision of a vocabulary; raise Conflict if the name is taken there."""
    caller.require(Permission.PUBLISH, vocabulary)
    if releases.find(transaction.flush(), qualify_id(vocabulary, name)):
        raise Conflict(f"There is a release {name!r} already.")
    release = Release(qualify_id(vocabulary, name), transaction.revision, note, caller.account.id, now_ms())
    releases.add(transaction, release)
    return release


def get_release(snapshot: Snapshot, name: str, vocabulary: str = MAIN_VOCABULARY) -> Release:
    """Return the release of a vocabulary with a name; raise NotFound."""
    message = f"There is no release {name!r}."
    release = find_or_raise(lambda: releases.find(snapshot, qualify_id(vocabulary, name)), name, message)
    if release.vocabulary != vocabulary:
        raise NotFound(message)
    return release


def list_releases(snapshot: Snapshot, vocabulary: str = MAIN_VOCABULARY) -> list[Release]:
    """Return all releases of a vocabulary, the newest first."""
    return [release for release in releases.list_all(snapshot) if release.vocabulary == vocabulary]
