"""Random mutations of bytes, small enough that most of the data stays readable."""

import random

TOKENS = (
    *(bytes([byte]) for byte in b"\"'\\{}[]<>&;,:\t\n\r\x00\xff"),
    *(b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xc3", b"null", b"true", b"-1", b"1e999", b"99999999999999999999", b"NaN"),
    *(b"\\ud800", b"\\u0000", b"<!DOCTYPE x [", b"<!ENTITY a 'a'>", b"&a;", b"]]>", b"[Term]\n", b"id: \n", b"<<<<"),
    *(b"@prefix", b"=1+1", b"%00", b"%s", b"../", b"trm_", b"KINDOF", b"{}", b"[]", b'""', b"\xf0\x9f\xa7\xa0"),
    *(b"a" * 5_000, b"[" * 500),
)
_MAX_MUTATIONS = 3
_MAX_SLICE_BYTES = 400


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Mutate data in a few places."""
    for _ in range(rng.randint(1, _MAX_MUTATIONS)):
        data = rng.choice(_MUTATIONS)(data, rng)
    return data


def _insert(data: bytes, rng: random.Random) -> bytes:
    index = rng.randint(0, len(data))
    return data[:index] + rng.choice(TOKENS) + data[index:]


def _remove(data: bytes, rng: random.Random) -> bytes:
    start, end = _pick_slice(data, rng)
    return data[:start] + data[end:]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    start, end = _pick_slice(data, rng)
    return data[:end] + data[start:end] * rng.randint(1, 5) + data[end:]


def _move(data: bytes, rng: random.Random) -> bytes:
    start, end = _pick_slice(data, rng)
    remainder = data[:start] + data[end:]
    index = rng.randint(0, len(remainder))
    return remainder[:index] + data[start:end] + remainder[index:]


def _flip_bit(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return data
    index = rng.randrange(len(data))
    return data[:index] + bytes([data[index] ^ (1 << rng.randrange(8))]) + data[index + 1 :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def _swap_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def _pick_slice(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randint(0, len(data))
    return start, min(len(data), start + rng.randint(0, _MAX_SLICE_BYTES))


_MUTATIONS = (_insert, _insert, _insert, _remove, _repeat, _move, _flip_bit, _flip_bit, _cut, _swap_lines)
