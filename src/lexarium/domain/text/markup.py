"""Markup in texts of other people: HTML entities and Markdown emphasis."""

import html
import re
from collections.abc import Iterator

# Named ones only where they are usual: `&copy` may be part of an address.
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|quot|amp|lt|gt|apos|nbsp);")
# `*a word*`, but not `2 * 3 * 4` or `p*q*r`.
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])")


def decode_entities(text: str) -> str:
    """Return a text with its HTML entities as characters."""
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text


def split_emphasis(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text, each with whether it is emphasized."""
    for place, part in enumerate(_EMPHASIS.split(text)):
        if part:
            yield part, place % 2 == 1
