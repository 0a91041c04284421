"""CURIEs and IRIs: expand, contract and link identifiers by a bundled table of prefixes and those of a vocabulary."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from lexarium.domain.identifiers import find_target_problem

_TABLE = Path(__file__).with_name("prefixes.csv")

OBO_BASE = "http://purl.obolibrary.org/obo/"
# `FOO_0000001`, for ontologies that the table does not know. Prefixes with digits are left out: they are versions
# (`SNOMEDCT_US_2025_09_01`) more often than ontologies.
_OBO_PREFIX = r"[A-Za-z](?:[A-Za-z_]*[A-Za-z])?"
_OBO_NAME = re.compile(rf"({_OBO_PREFIX})_([0-9]+)")
_OBO_CURIE = re.compile(rf"({_OBO_PREFIX}):([0-9]+)")

_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
# Schemes of IRIs. As prefixes they would make an IRI look like a CURIE.
_SCHEMES = frozenset(
    (
        "about",
        "blob",
        "data",
        "file",
        "ftp",
        "http",
        "https",
        "info",
        "javascript",
        "mailto",
        "tag",
        "tel",
        "urn",
        "vbscript",
    )
)
# A namespace must reach beyond the host, so that the local part cannot change the host.
_NAMESPACE = re.compile(r"https?://[^/?#@]+[/?#].*|(?!https?:)[a-z][a-z0-9+.-]*:.+", re.IGNORECASE)
_WEB_SCHEMES = ("http://", "https://")

# Date of an edition within a prefix, as in `SNOMEDCT_US_2025_09_01`.
_EDITION = re.compile(r"_[0-9]{4}_[0-9]{2}_[0-9]{2}$")
_DOI = re.compile(r"10\.[0-9]{4,9}/\S+")
# Prefixes before a complete address: `url:https://example.org/`.
_ADDRESS_PREFIXES = frozenset(("iri", "uri", "url"))
# Characters that no IRI may have, and the rest that `quote` must keep.
_NOT_IN_IRI = re.compile(r"[\x00-\x20<>\"{}|\\^`\[\]]|%(?![0-9A-Fa-f]{2})")
_LONE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_IRI_CHARS = "%:/?@!$&'()*+,;=~"
# Old DOIs contain characters that no IRI may have.
_ESCAPES = {ord(character): f"%{ord(character):02X}" for character in ' <>"{}|\\^`'}


class PrefixRow(NamedTuple):
    """Row of the bundled table."""

    prefix: str
    namespace: str
    # Address of a page for people, with `$1` for the local part; empty if it is the IRI itself.
    link: str = ""
    # Other prefixes that people write for it.
    synonyms: tuple[str, ...] = ()
    # Other namespaces of the same identifiers, such as `http` for `https`. Never contracted, so that nothing is lost.
    variants: tuple[str, ...] = ()


class _NamespaceIndex:
    """Finds the longest namespace that an IRI starts with."""

    __slots__ = ("_leaves", "_lengths", "_prefixes", "_short_lengths")

    # Length of the start of an IRI by which namespaces are grouped. Few namespaces are shorter.
    _KEY_LENGTH = 16

    def __init__(self, prefixes: dict[str, str]) -> None:
        self._prefixes = prefixes
        lengths: dict[str, set[int]] = {}
        for namespace in prefixes:
            key = namespace[: self._KEY_LENGTH] if len(namespace) >= self._KEY_LENGTH else ""
            lengths.setdefault(key, set()).add(len(namespace))
        self._short_lengths = tuple(sorted(lengths.pop("", ()), reverse=True))
        self._lengths = {key: tuple(sorted(group, reverse=True)) for key, group in lengths.items()}
        # Namespaces that no other one continues: whichever of them fits is the longest.
        namespaces = sorted(prefixes)
        self._leaves = {
            namespace: prefixes[namespace]
            for namespace, following in zip_longest(namespaces, namespaces[1:], fillvalue="")
            if not following.startswith(namespace)
        }

    def find(self, iri: str) -> tuple[str, int] | None:
        """Return the prefix and the length of the longest namespace before a local part that a CURIE can hold."""
        # The usual places to cut an IRI: before a number, after the last slash or hash, after the last underscore.
        leaves = self._leaves
        head = iri.rstrip("0123456789")
        prefix = leaves.get(head)
        if prefix is None:
            slash = iri.rfind("/") + 1
            cut = (iri.rfind("#", slash) + 1) or slash
            head = iri[:cut]
            prefix = leaves.get(head)
            if prefix is None and (cut := iri.rfind("_", cut) + 1):
                head = iri[:cut]
                prefix = leaves.get(head)
        if prefix is not None and len(head) < len(iri):
            return prefix, len(head)
        return self._find_longest(iri)

    def _find_longest(self, iri: str) -> tuple[str, int] | None:
        prefixes = self._prefixes
        for lengths in (self._lengths.get(iri[: self._KEY_LENGTH], ()), self._short_lengths):
            for length in lengths:
                prefix = prefixes.get(iri[:length])
                # `prefix://x` would be an IRI.
                if prefix is not None and len(iri) > length and not iri.startswith("//", length):
                    return prefix, length
        return None


class PrefixMap:
    """Prefixes with their namespaces. Immutable; build one for each vocabulary and keep it."""

    __slots__ = ("_folded", "_index", "_namespaces", "_prefixes", "_rows", "_variant_index", "_vocabulary")

    def __init__(self, rows: Iterable[PrefixRow], vocabulary: Mapping[str, str] | None = None) -> None:
        """Build a map of table rows and the prefixes of a vocabulary, which win. Invalid ones are left out."""
        own = {prefix: namespace for prefix, namespace in (vocabulary or {}).items() if _is_valid(prefix, namespace)}
        hidden = {prefix.lower() for prefix in own}
        self._rows = tuple(rows)
        self._vocabulary = own
        # Spelled exactly, which is the common case.
        self._namespaces: dict[str, str] = {
            row.prefix: row.namespace for row in self._rows if row.prefix.lower() not in hidden
        }
        self._prefixes = {namespace: prefix for prefix, namespace in self._namespaces.items()}
        self._namespaces |= own
        self._prefixes |= {namespace: prefix for prefix, namespace in reversed(own.items())}
        self._folded = {name.lower(): row.namespace for row in self._rows for name in (row.prefix, *row.synonyms)} | {
            prefix.lower(): namespace for prefix, namespace in reversed(own.items())
        }
        self._index = _NamespaceIndex(self._prefixes)
        # Built on first use.
        self._variant_index: _NamespaceIndex | None = None

    def extend(self, vocabulary: Mapping[str, str]) -> "PrefixMap":
        """Return a map with the prefixes of a vocabulary, which win over the others."""
        return PrefixMap(self._rows, {**self._vocabulary, **vocabulary}) if vocabulary else self

    def items(self) -> Iterator[tuple[str, str]]:
        """Iterate over prefixes and namespaces, those of the vocabulary last."""
        return iter(self._namespaces.items())

    def find_namespace(self, prefix: str) -> str | None:
        """Return the namespace of a prefix, a synonym of it or another spelling in upper and lower case, or None."""
        namespace = self._namespaces.get(prefix)
        if namespace is None:
            folded = prefix.lower()
            namespace = self._folded.get(folded)
            if namespace is None and folded[-1:].isdigit():
                namespace = self._folded.get(_EDITION.sub("", folded))
        return namespace

    def expand(self, curie: str) -> str | None:
        """Return the IRI of a CURIE, or None for a text that is none or has an unknown prefix.

        An unknown prefix before a number is that of an OBO ontology, as the OBO format has it.
        """
        prefix, _, local = curie.partition(":")
        namespace = self._namespaces.get(prefix) or self.find_namespace(prefix)
        if namespace is not None:
            return None if not local or local.startswith("//") else namespace + local
        return expand_obo_curie(curie)

    def contract(self, iri: str) -> str | None:
        """Return the CURIE of an IRI, which expands to exactly this IRI, or None if no namespace fits."""
        found = self._index.find(iri)
        if (found is None or found[1] <= len(OBO_BASE)) and iri.startswith(OBO_BASE):
            match = _OBO_NAME.fullmatch(iri, len(OBO_BASE))
            if match and match[1].lower() not in _SCHEMES and self.find_namespace(match[1]) is None:
                return f"{match[1]}:{match[2]}"
        return f"{found[0]}:{iri[found[1] :]}" if found else None

    def normalize(self, identifier: str) -> str:
        """Return one spelling for all spellings of a CURIE or IRI, to compare them; never to store them.

        `doi:10.1/x`, `http://dx.doi.org/10.1/x` and `https://doi.org/10.1/x` are all `DOI:10.1/x`. What the map does
        not know is returned unchanged.
        """
        iri = self.expand(identifier) or identifier
        curie = self.contract(iri)
        found = self._find_variant(iri)
        if found and (curie is None or found[1] > len(OBO_BASE)):
            local = iri[found[1] :]
            return f"{found[0]}:{local.rstrip('/') or local}"
        return curie or identifier

    def link_of(self, identifier: str) -> str | None:
        """Return the address of a page for people about a DOI, CURIE or IRI, or None if there is no safe one."""
        identifier = identifier.strip()
        prefix, _, local = identifier.partition(":")
        if prefix.lower() in _ADDRESS_PREFIXES:
            identifier = local.strip()
        elif _DOI.fullmatch(identifier):
            identifier = f"DOI:{identifier}"
        elif local.startswith(" "):
            identifier = f"{prefix}:{local.strip()}"
        link = (self._find_address(identifier) or "").translate(_ESCAPES)
        return link if link.lower().startswith(_WEB_SCHEMES) and find_target_problem(link) is None else None

    def _find_address(self, identifier: str) -> str | None:
        prefix, _, _ = identifier.partition(":")
        iri = identifier if self.find_namespace(prefix) is None else self.expand(identifier)
        if iri is None:
            return None
        found = self._find_variant(iri)
        if found:
            template = _load_links().get(self._namespaces[found[0]])
            if template:
                return template.replace("$1", iri[found[1] :].rstrip("/"))
        return iri

    def _find_variant(self, iri: str) -> tuple[str, int] | None:
        if self._variant_index is None:
            variants = {
                variant: self._prefixes[row.namespace]
                for row in self._rows
                if row.namespace in self._prefixes
                for variant in row.variants
            }
            self._variant_index = _NamespaceIndex(variants | self._prefixes)
        return self._variant_index.find(iri)


def _is_valid(prefix: str, namespace: str) -> bool:
    return _find_prefix_problem(prefix) is None and _find_namespace_problem(namespace) is None


def _find_prefix_problem(prefix: str) -> str | None:
    if not _PREFIX.fullmatch(prefix):
        return "A prefix must start with a letter and contain only letters, digits, dots, hyphens and underscores."
    if prefix.lower() in _SCHEMES:
        return "An IRI scheme cannot be a prefix."
    return None


def _find_namespace_problem(namespace: str) -> str | None:
    if find_target_problem(namespace) is None and _NAMESPACE.fullmatch(namespace):
        return None
    return "A namespace must be the start of an IRI with host and slash, such as https://example.org/terms/."


def find_prefix_problems(prefixes: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the prefixes of a vocabulary, one sentence for each problem."""
    problems = []
    spellings: dict[str, str] = {}
    for prefix, namespace in prefixes.items():
        found = (_find_prefix_problem(prefix), _find_namespace_problem(namespace))
        problems += [f"Invalid prefix {prefix!r} for {namespace!r}: {problem}" for problem in found if problem]
        other = spellings.setdefault(prefix.lower(), prefix)
        if other != prefix:
            problems.append(f"The prefixes {other} and {prefix} differ only in case; remove one of them.")
    return problems


@cache
def read_table() -> tuple[PrefixRow, ...]:
    """Read the bundled table."""
    with _TABLE.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(line for line in file if not line.startswith("#"))
        next(rows)  # names of the columns
        return tuple(
            PrefixRow(prefix, namespace, link, tuple(synonyms.split()), tuple(variants.split()))
            for prefix, namespace, link, synonyms, variants in rows
        )


@cache
def load_bundled() -> PrefixMap:
    """Return the map of the bundled table. It is read on first use."""
    return PrefixMap(read_table())


@cache
def _load_links() -> dict[str, str]:
    return {row.namespace: row.link for row in read_table() if row.link}


def expand_obo_curie(curie: str) -> str | None:
    """Return the IRI of a prefix and a number as the OBO format has it, or None."""
    match = _OBO_CURIE.fullmatch(curie)
    return f"{OBO_BASE}{match[1]}_{match[2]}" if match and match[1].lower() not in _SCHEMES else None


def encode_iri(iri: str) -> str:
    """Return an IRI, with percent-encoding if it has characters that none may have."""
    if not _NOT_IN_IRI.search(iri):
        return iri
    start, hash_sign, fragment = iri.partition("#")
    start, fragment = (quote(_LONE_PERCENT.sub("%25", part), safe=_IRI_CHARS) for part in (start, fragment))
    return start + hash_sign + fragment


def expand(curie: str, prefixes: PrefixMap | None = None) -> str | None:
    """Return the IRI of a CURIE, or None; by the bundled table unless another map is given."""
    return (load_bundled() if prefixes is None else prefixes).expand(curie)


def contract(iri: str, prefixes: PrefixMap | None = None) -> str | None:
    """Return the CURIE of an IRI, or None; by the bundled table unless another map is given."""
    return (load_bundled() if prefixes is None else prefixes).contract(iri)


def link_of(identifier: str, prefixes: PrefixMap | None = None) -> str | None:
    """Return the address of a page for people, or None; by the bundled table unless another map is given."""
    return (load_bundled() if prefixes is None else prefixes).link_of(identifier)
