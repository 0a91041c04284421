"""Language tags (BCP 47): canonical form, validity, and the choice of a language that a reader understands."""

import re
from collections.abc import Iterable, Sequence

from lexarium.domain.errors import InvalidInput

# The form of a tag in RDF and in older files. It allows more than BCP 47.
TAG_FORM = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")

# A language subtag, then script, region, variants, extensions and private use, all but the first optional (RFC 5646).
_WELL_FORMED = re.compile(
    r"""
    (?: [a-z]{2,3} (?:-[a-z]{3}){0,3} | [a-z]{4,8} )
    (?: -[a-z]{4} )?
    (?: -(?:[a-z]{2}|[0-9]{3}) )?
    (?: -(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}) )*
    (?: -[a-wy-z0-9](?:-[a-z0-9]{2,8})+ )*
    (?: -x(?:-[a-z0-9]{1,8})+ )?
    | x(?:-[a-z0-9]{1,8})+
    """,
    re.VERBOSE,
)

# Tags that were registered before there were rules, and outdated ones, with what replaces them, if anything does.
# They are kept as they are written. The replacement counts when a reader's language is looked for.
_REPLACEMENTS = {
    "art-lojban": "jbo",
    "cel-gaulish": "",
    "en-gb-oed": "en-gb-oxendict",
    "i-ami": "ami",
    "i-bnn": "bnn",
    "i-default": "",
    "i-enochian": "",
    "i-hak": "hak",
    "i-klingon": "tlh",
    "i-lux": "lb",
    "i-mingo": "",
    "i-navajo": "nv",
    "i-pwn": "pwn",
    "i-tao": "tao",
    "i-tay": "tay",
    "i-tsu": "tsu",
    "in": "id",
    "iw": "he",
    "ji": "yi",
    "no-bok": "nb",
    "no-nyn": "nn",
    "sgn-be-fr": "sfb",
    "sgn-be-nl": "vgt",
    "sgn-ch-de": "sgg",
    "zh-guoyu": "cmn",
    "zh-hakka": "hak",
    "zh-min": "",
    "zh-min-nan": "nan",
    "zh-xiang": "hsn",
}

_ANY_LANGUAGE = "*"
# Parts of a header that are read; browsers send a handful.
_MAX_RANGES = 50
_QUALITY = re.compile(r"q\s*=\s*(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)", re.IGNORECASE)


def get_primary_subtag(tag: str) -> str:
    """Return the language of a tag without script and region."""
    return tag.partition("-")[0].lower()


def is_language_tag(tag: str) -> bool:
    """Return whether a text has the form of a language tag in a file, which need not be valid."""
    return TAG_FORM.fullmatch(tag) is not None


def find_tag_problem(tag: str) -> str | None:
    """Return why a text is not a well-formed language tag, as one sentence, or None."""
    folded = tag.lower()
    if not tag.isascii() or not (_WELL_FORMED.fullmatch(folded) or folded in _REPLACEMENTS):
        hint = (
            f" Write {tag.replace('_', '-')}." if "_" in tag and find_tag_problem(tag.replace("_", "-")) is None else ""
        )
        return f"{tag[:40]!r} is not a language tag, such as en, pt-BR or zh-Hant.{hint}"
    repeated = _find_repeated(folded)
    return f"The language tag {tag!r} has the part {repeated!r} twice." if repeated else None


def _find_repeated(folded: str) -> str | None:
    """Return a variant or the letter of an extension that a tag has twice, or None."""
    seen = set()
    parts = folded.partition("-x-")[0].split("-")[1:]
    in_extension = False
    for part in parts:
        if len(part) == 1:
            in_extension = True
        elif in_extension or (len(part) < 5 and not part[0].isdigit()) or (len(part) == 3 and part.isdigit()):
            continue
        if part in seen:
            return part
        seen.add(part)
    return None


def format_tag(tag: str) -> str:
    """Return a tag with upper and lower case as BCP 47 writes it: `en-GB`, `zh-Hant-TW`. Accepts any text."""
    first, *parts = tag.lower().split("-")
    written = [first]
    # After a single letter comes an extension or private use, in lower case.
    after_single = len(first) == 1
    for part in parts:
        if after_single or len(part) not in (2, 4) or not part.isalpha():
            written.append(part)
        else:
            written.append(part.upper() if len(part) == 2 else part.title())
        after_single = after_single or len(part) == 1
    return "-".join(written)


def canonicalize_tag(tag: str) -> str:
    """Return a language tag in its canonical form; raise InvalidInput if it is none.

    Only upper and lower case change, so that a vocabulary is written as its owner tagged it.
    """
    problem = find_tag_problem(tag)
    if problem:
        raise InvalidInput(problem)
    return format_tag(tag)


def choose_language(available: Iterable[str], wanted: str | Sequence[str], default: str) -> str | None:
    """Return the available tag that suits a reader best, as it is given; None if there is none.

    For each wanted language in turn: the tag itself, then less specific ones (`en-GB`, `en`), then another kind of the
    same language (`en-US`). Else the default language in the same way, else the first. A text without a tag (`""`) is
    read as the default language.
    """
    tags = list(available)
    if isinstance(wanted, str):
        if wanted in tags and wanted:
            return wanted
        wanted = (wanted,)
    tags_by_key: dict[str, str] = {}
    for tag in tags:
        tags_by_key.setdefault(_to_key(tag or default), tag)
    for candidate in (*wanted, default):
        found = _look_up(_to_key(default if candidate == _ANY_LANGUAGE else candidate), tags_by_key)
        if found is not None:
            return found
    return tags[0] if tags else None


def _to_key(tag: str) -> str:
    folded = tag.lower()
    return _REPLACEMENTS.get(folded) or folded


def _look_up(key: str, tags_by_key: dict[str, str]) -> str | None:
    if not key:
        return None
    language = key.partition("-")[0]
    range_ = key
    while range_:
        if range_ in tags_by_key:
            return tags_by_key[range_]
        range_ = range_.rpartition("-")[0]
        # A single letter belongs to the part after it.
        if range_[-2:-1] == "-":
            range_ = range_[:-2]
    # Tags for private use have nothing in common.
    if len(language) == 1:
        return None
    return next((tag for other, tag in tags_by_key.items() if other.partition("-")[0] == language), None)


def parse_accept_language(header: str | None) -> tuple[str, ...]:
    """Return the languages of an Accept-Language header, best first, in canonical form; `*` means any.

    Parts that are no language, and those with quality 0, are left out. Never raises.
    """
    qualities: dict[str, float] = {}
    for part in (header or "").split(",", _MAX_RANGES)[:_MAX_RANGES]:
        text, separator, parameter = part.partition(";")
        tag = text.strip()
        match = _QUALITY.fullmatch(parameter.strip()) if separator else None
        if (separator and not match) or (tag != _ANY_LANGUAGE and find_tag_problem(tag)):
            continue
        tag = format_tag(tag)
        quality = float(match[1]) if match else 1.0
        qualities[tag] = max(quality, qualities.get(tag, 0.0))
    ranked = sorted((tag for tag, quality in qualities.items() if quality > 0), key=lambda tag: -qualities[tag])
    return tuple(ranked)
