"""How bytes are spoilt: a little, so that most of what reads them still does."""

import random

TOKENS = (
    *(bytes([each]) for each in b"\"'\\{}[]<>&;,:\t\n\r\x00\xff"),
    *(b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xc3", b"null", b"true", b"-1", b"1e999", b"99999999999999999999", b"NaN"),
    *(b"\\ud800", b"\\u0000", b"<!DOCTYPE x [", b"<!ENTITY a 'a'>", b"&a;", b"]]>", b"[Term]\n", b"id: \n", b"<<<<"),
    *(b"@prefix", b"=1+1", b"%00", b"%s", b"../", b"trm_", b"KINDOF", b"{}", b"[]", b'""', b"\xf0\x9f\xa7\xa0"),
    *(b"a" * 5_000, b"[" * 500),
)
_MOST_SPOILS = 3
_LONGEST_SLICE = 400


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The same, spoilt in a few places."""
    for _ in range(chance.randint(1, _MOST_SPOILS)):
        data = chance.choice(_WAYS)(data, chance)
    return data


def _insert(data: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(data))
    return data[:at] + chance.choice(TOKENS) + data[at:]


def _remove(data: bytes, chance: random.Random) -> bytes:
    start, end = _slice(data, chance)
    return data[:start] + data[end:]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    start, end = _slice(data, chance)
    return data[:end] + data[start:end] * chance.randint(1, 5) + data[end:]


def _move(data: bytes, chance: random.Random) -> bytes:
    start, end = _slice(data, chance)
    rest = data[:start] + data[end:]
    at = chance.randint(0, len(rest))
    return rest[:at] + data[start:end] + rest[at:]


def _flip(data: bytes, chance: random.Random) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randint(0, len(data))]


def _swap_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _slice(data: bytes, chance: random.Random) -> tuple[int, int]:
    start = chance.randint(0, len(data))
    return start, min(len(data), start + chance.randint(0, _LONGEST_SLICE))


_WAYS = (_insert, _insert, _insert, _remove, _repeat, _move, _flip, _flip, _cut, _swap_lines)
