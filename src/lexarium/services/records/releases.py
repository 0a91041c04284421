"""Named releases of vocabularies."""

import re
from collections.abc import Iterable, Sequence

from lexarium.domain.errors import Conflict, NotFound
from lexarium.domain.identifiers import MAIN_VOCABULARY, qualify_id
from lexarium.domain.release import Release, ReleaseFile
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.text.timestamps import now_ms
from lexarium.domain.vocabulary import Vocabulary
from lexarium.services.access.permissions import Caller, Permission
from lexarium.store import releases
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

# Releases that a message names.
_MAX_NAMES = 10
_RELEASE_PATH = re.compile(r"(?:^|/)releases/([^/]+)")
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def validate_release_name(name: str) -> str:
    """Return a valid name of a release; raise ValueError."""
    if not NAME_PATTERN.fullmatch(name):
        raise ValueError("must be up to 100 letters, digits, dots, hyphens and underscores, such as 2026.1.")
    return name


def create_release(
    transaction: Transaction, caller: Caller, name: str, note: str, vocabulary: str = MAIN_VOCABULARY
) -> Release:
    """Name the current revision of a vocabulary; raise Conflict if the name is taken there."""
    caller.require(Permission.PUBLISH, vocabulary)
    if releases.find(transaction.flush(), qualify_id(vocabulary, name)):
        raise Conflict(f"Release {name!r} already exists.")
    release = Release(qualify_id(vocabulary, name), transaction.revision, note, caller.account.id, now_ms())
    releases.add(transaction, release)
    return release


def get_release(snapshot: Snapshot, name: str, vocabulary: str = MAIN_VOCABULARY) -> Release:
    """Return the release of a vocabulary with a name; raise NotFound."""
    release = None if find_unstorable_char(name) else releases.find(snapshot, qualify_id(vocabulary, name))
    if release is None or release.vocabulary != vocabulary:
        names = ", ".join(item.local_name for item in list_releases(snapshot, vocabulary)[:_MAX_NAMES]) or "none yet"
        raise NotFound(f"Release {name!r} not found; releases of {vocabulary}: {names}.")
    return release


def list_releases(snapshot: Snapshot, vocabulary: str = MAIN_VOCABULARY) -> list[Release]:
    """Return all releases of a vocabulary, the newest first."""
    return [release for release in releases.list_all(snapshot) if release.vocabulary == vocabulary]


def find_previous(snapshot: Snapshot, release: Release) -> Release | None:
    """Return the release of the vocabulary before another, or None if that is the first."""
    newest_first = list_releases(snapshot, release.vocabulary)
    return next(iter(newest_first[newest_first.index(release) + 1 :]), None)


def find_versions(snapshot: Snapshot, described: Iterable[Vocabulary]) -> dict[str, str]:
    """Return the name of the newest release of each vocabulary, or else the version of the file it came from."""
    by_vocabulary: dict[str, list[Release]] = {}
    for release in releases.list_all(snapshot):
        by_vocabulary.setdefault(release.vocabulary, []).append(release)
    return {item.slug: name_version(item, by_vocabulary.get(item.slug, ())) for item in described}


def name_version(described: Vocabulary, newest_first: Sequence[Release]) -> str:
    """Return the name of the newest release of a vocabulary, else the version of the file it came from, if any."""
    return newest_first[0].local_name if newest_first else _shorten_version(described.version)


def _shorten_version(version: str) -> str:
    """Return the date of a version that is a path, as OBO files have it."""
    match = _RELEASE_PATH.search(version)
    return match[1] if match else version


def list_files(snapshot: Snapshot, release: Release) -> dict[str, ReleaseFile]:
    """Return the files of a release that were rendered, by format."""
    return {file.format: file for file in releases.list_files(snapshot, release.name)}
