"""The rule by which a vocabulary mints the ids of new records: numbered, random, or none."""

import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

from lexarium.domain.errors import Conflict, FieldProblem, InvalidInput
from lexarium.domain.identifiers import MAX_ID_BYTES, is_id_too_long

# Largest number that every engine stores as an integer, with room to spare.
MAX_NUMBER = 10**18 - 1
_MAX_WIDTH = 18

_RANDOM_BYTES = 8
# An id and a range fit, and no text takes long to parse.
_MAX_TEXT = 600

NO_MINTING = "none"
_EXAMPLES = "DOID:{n:07}, DOID:{n:07} from 1000 to 9999, trm_{random}, or none"

_RANGE = re.compile(r"(?P<template>.*?)(?:\s+from\s+(?P<first>\S+))?(?:\s+to\s+(?P<last>\S+))?", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NUMBER = re.compile(r"n(?::0([1-9][0-9]?))?")
_WHOLE_NUMBER = re.compile(r"[0-9]{1,18}")
# Characters that no id may have.
_FORBIDDEN = re.compile(r"""[\s\x00-\x1f\x7f-\x9f\ud800-\udfff<>"{}|\\^`]""")


class MintingKind(StrEnum):
    """Method of creating ids."""

    NUMBER = "number"
    RANDOM = "random"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class MintingRule:
    """Rule for new ids. `str` gives the text form, which `parse` reads."""

    kind: MintingKind
    # Text before and after the number or the random part.
    before: str = ""
    after: str = ""
    # Digits to which a number is filled up with zeros; 0 for as many as it has.
    width: int = 0
    first: int = 1
    # None if the width is the only limit.
    last: int | None = None

    @staticmethod
    def parse(text: str) -> "MintingRule":
        """Parse a rule such as `DOID:{n:07} from 1000 to 9999`, `trm_{random}` or `none`; raise InvalidInput."""
        rule, problems = _parse(text)
        if problems:
            raise InvalidInput(
                " ".join(problems), [FieldProblem("minting", problem, subject="Minting rule:") for problem in problems]
            )
        return rule

    @property
    def template(self) -> str:
        """The rule without its range."""
        if self.kind is MintingKind.NONE:
            return NO_MINTING
        number = f"{{n:0{self.width}}}" if self.width else "{n}"
        return f"{self.before}{'{random}' if self.kind is MintingKind.RANDOM else number}{self.after}"

    @property
    def limit(self) -> int:
        """The last number that the range and the width allow."""
        return min(MAX_NUMBER if self.last is None else self.last, 10**self.width - 1 if self.width else MAX_NUMBER)

    def __str__(self) -> str:
        if self.last is not None:
            return f"{self.template} from {self.first} to {self.last}"
        return (
            self.template
            if self.first == 1 or self.kind is not MintingKind.NUMBER
            else f"{self.template} from {self.first}"
        )

    def format_id(self, number: int) -> str:
        """Return the id with a number."""
        return f"{self.before}{number:0{self.width}d}{self.after}"

    def has_form(self, record_id: str) -> bool:
        """Return whether an id is as the rule mints them, with any number. Any id is where authors give them."""
        if not (record_id.startswith(self.before) and record_id.endswith(self.after)):
            return False
        middle = record_id[len(self.before) : len(record_id) - len(self.after)]
        return self.kind is not MintingKind.NUMBER or (middle.isascii() and middle.isdigit())

    def parse_number(self, record_id: str) -> int | None:
        """Return the number of an id that follows the rule, with any number of zeros, or None.

        Numbers outside the range are left out: they belong to somebody else's range.
        """
        if self.kind is not MintingKind.NUMBER or not self.has_form(record_id):
            return None
        digits = record_id[len(self.before) : len(record_id) - len(self.after)]
        significant = digits.lstrip("0")
        number = int(significant or "0") if len(significant) <= _MAX_WIDTH else -1
        return number if self.first <= number <= self.limit else None


def mint(rule: MintingRule, last_used: int | None = None) -> str:
    """Mint an id, with the number after the last one used; raise Conflict if none is left.

    A rule by which authors give the ids mints none.
    """
    if rule.kind is MintingKind.RANDOM:
        return f"{rule.before}{secrets.token_hex(_RANDOM_BYTES)}{rule.after}"
    number = rule.first if last_used is None else max(rule.first, last_used + 1)
    if number > rule.limit:
        raise Conflict(
            f"The ID pattern {rule} has no number left. Set a pattern with a new range, or choose an ID for the"
            " new record yourself.",
            rule=str(rule),
        )
    return rule.format_id(number)


def find_id_problem(local_id: str) -> str | None:
    """Return the reason why an id that an author gives cannot be one, or None."""
    if not local_id:
        return "must not be empty."
    if is_id_too_long(local_id):
        return f"must have at most {MAX_ID_BYTES} bytes."
    forbidden = _FORBIDDEN.search(local_id)
    return f"cannot contain the character {forbidden[0]!r}." if forbidden else None


def find_rule_problems(text: str) -> list[str]:
    """Return all problems of a rule, one sentence each."""
    return _parse(text)[1]


def _parse(text: str) -> tuple[MintingRule, list[str]]:
    if len(text) > _MAX_TEXT:
        return MintingRule(MintingKind.NONE), [f"A pattern can have at most {_MAX_TEXT} characters."]
    match = _RANGE.fullmatch(text.strip())
    assert match
    template = match["template"]
    problems: list[str] = []
    first, last = _parse_bound("from", match["first"], problems), _parse_bound("to", match["last"], problems)
    rule = _parse_template(template, problems)
    if rule.kind is not MintingKind.NUMBER:
        if first is not None or last is not None:
            problems.append("A range needs a pattern with a number, such as DOID:{n:07}.")
        return rule, problems
    ranged = MintingRule(rule.kind, rule.before, rule.after, rule.width, 1 if first is None else first, last)
    if not problems:
        problems += _find_range_problems(ranged)
    return ranged, problems


def _parse_bound(word: str, written: str | None, problems: list[str]) -> int | None:
    if written is None:
        return None
    if not _WHOLE_NUMBER.fullmatch(written):
        problems.append(
            f"The number after {word!r} must be a whole number with at most 18 digits, not {written[:40]!r}."
        )
        return None
    return int(written)


def _parse_template(template: str, problems: list[str]) -> MintingRule:
    """Return the rule of a template without its range, and add its problems."""
    if template.lower() == NO_MINTING:
        return MintingRule(MintingKind.NONE)
    parts = _PLACEHOLDER.split(template)
    texts, placeholders = parts[::2], parts[1::2]
    if not template:
        problems.append(f"The pattern is empty; write one such as {_EXAMPLES}.")
    elif not placeholders:
        problems.append(f"{template[:40]!r} has no number; write a pattern such as {_EXAMPLES}.")
    elif len(placeholders) > 1:
        problems.append(f"{template[:40]!r} must have one number or random part, not {len(placeholders)}.")
    rules = [_parse_placeholder(placeholder, texts[0], texts[-1], problems) for placeholder in placeholders]
    text = "".join(texts)
    forbidden = _FORBIDDEN.search(text)
    if forbidden:
        problems.append(f"An ID cannot contain the character {forbidden[0]!r}.")
    if is_id_too_long(f"{text}{'0' * _MAX_WIDTH}"):
        problems.append("The IDs of this pattern would be too long; shorten its text.")
    return rules[-1] if rules else MintingRule(MintingKind.NONE)


def _parse_placeholder(placeholder: str, before: str, after: str, problems: list[str]) -> MintingRule:
    if placeholder == MintingKind.RANDOM:
        return MintingRule(MintingKind.RANDOM, before, after)
    match = _NUMBER.fullmatch(placeholder)
    if not match:
        problems.append(f"'{{{placeholder[:40]}}}' is unknown; write {{n}}, {{n:07}} for seven digits, or {{random}}.")
    width = int(match[1] or 0) if match else 0
    if width > _MAX_WIDTH:
        problems.append(f"A number can have at most {_MAX_WIDTH} digits, not {width}.")
    return MintingRule(MintingKind.NUMBER, before, after, min(width, _MAX_WIDTH))


def _find_range_problems(rule: MintingRule) -> list[str]:
    problems = []
    if rule.last is not None and rule.last < rule.first:
        problems.append(f"The range from {rule.first} to {rule.last} is empty.")
    highest = max(rule.first, rule.last or 0)
    if rule.width and len(str(highest)) > rule.width:
        problems.append(f"{highest} has more digits than {{n:0{rule.width}}} has room for.")
    return problems
