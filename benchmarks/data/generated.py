"""Generate records, names and text with Zipf-distributed words.

Indexes, compression and caches get a realistic mix of frequent and rare words. A seed always gives the same
records, and records are generated one at a time.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate, islice, product
from random import Random

from benchmarks.data.records import Record

_CLASS_NAMES = ("Seeing", "Hearing", "Acting", "Recalling", "Choosing", "Feeling")
CLASSES: tuple[Record, ...] = tuple(
    {"id": f"ctp_M{number}", "name": name, "description": name} for number, name in enumerate(_CLASS_NAMES, start=1)
)

STOP_WORDS = """
    the of and a to in that is by with for as or on which from an it when are between during this not their
    into more than each one at before after without about its how
"""
TOPIC_WORDS = """
    memory attention control learning recall response stimulus visual task spatial emotion language working
    perception verbal motor reward decision auditory inhibition recognition fear semantic social judgment cue
    delay conflict face word object sequence reasoning prediction error switching planning imagery rehearsal
    salience threshold category intention arousal habit orientation retrieval belief effort vigilance fluency
    priming naïveté déjà-vu
"""
# Every prefix with every stem and suffix: the long tail of rare words.
PREFIXES = "re inter meta sub para neuro hyper auto pre co trans peri socio proto iso macro"
STEMS = "cept lat mnem grad form vers sens spect mot pend tract sign loc norm fract cogn dur flex sert nav"
SUFFIXES = "ion al ive ity ment ance ing ure or ization ism ary"
_SYLLABLES = [
    first + middle + last for first in "bdfgklmnprstvwz" for middle in "aeiou" for last in ("", "ck", "l", "n")
]

_FIRST_TIMESTAMP = datetime(2009, 1, 1)
_TIMESTAMP_RANGE_SECONDS = 16 * 365 * 24 * 3600
_SYSTEM_USER = "usr_0000000000"
_PLACEHOLDER_DEFINITION = "Nobody has defined this term yet."


class ZipfSampler:
    """Sample words by rank: the word at rank r occurs about 1/r as often as the first."""

    def __init__(self, words: Sequence[str], rng: Random, smoothing: int = 2) -> None:
        """Flatten the head of the distribution by `smoothing`."""
        self._words = words
        self._weights = list(accumulate(1 / (rank + smoothing) for rank in range(len(words))))
        self._rng = rng

    def draw(self, count: int) -> list[str]:
        return self._rng.choices(self._words, cum_weights=self._weights, k=count)


def generate_records(count: int, seed: int = 1) -> Iterator[Record]:
    """Yield concepts with every field of the read interface, the same ones for the same seed."""
    rng = Random(seed)
    rare_words = _build_rare_words(rng)
    topics = ZipfSampler(TOPIC_WORDS.split() + rare_words, rng)
    prose = ZipfSampler(STOP_WORDS.split() + TOPIC_WORDS.split() + rare_words, rng)
    users = [_SYSTEM_USER, *(f"usr_{rng.getrandbits(52):013x}" for _ in range(40))]
    for number in range(count):
        yield _generate_record(number, rng, topics, prose, users)


def generate_names(count: int, seed: int = 1) -> list[str]:
    """Return distinct names like those of the records."""
    rng = Random(seed)
    topics = ZipfSampler(TOPIC_WORDS.split() + _build_rare_words(rng), rng)
    names: dict[str, None] = {}
    while len(names) < count:
        words = iter(topics.draw(100_000))
        for length in rng.choices((1, 2, 3, 4), weights=(2, 5, 3, 1), k=25_000):
            names[" ".join(islice(words, length))] = None
    return list(names)[:count]


class TextGenerator:
    """Prose that mentions names, among twenty thousand words that occur in none of them."""

    def __init__(self, names: Sequence[str], seed: int = 1) -> None:
        self._rng = Random(seed)
        self._names = names
        ordinary_words = [
            "".join(self._rng.choices(_SYLLABLES, k=self._rng.choice((1, 2, 2, 3)))) for _ in range(20_000)
        ]
        self._words = ZipfSampler(STOP_WORDS.split() + ordinary_words, self._rng)

    def generate(self, characters: int, chars_per_mention: int) -> str:
        """Return a new text with a number of characters and one mention per `chars_per_mention`."""
        words = iter(self._words.draw(characters // 2))
        parts: list[str] = []
        length = next_mention = 0
        while length < characters:
            if length >= next_mention:
                word = self._rng.choice(self._names)
                next_mention += chars_per_mention
            else:
                word = next(words)
            parts.append(word + self._rng.choices((" ", ", ", ". ", "\n"), weights=(80, 6, 6, 8))[0])
            length += len(parts[-1])
        return "".join(parts)[:characters]


def _build_rare_words(rng: Random) -> list[str]:
    rare_words = ["".join(parts) for parts in product(PREFIXES.split(), STEMS.split(), SUFFIXES.split())]
    rng.shuffle(rare_words)
    return rare_words


def _generate_record(number: int, rng: Random, topics: ZipfSampler, prose: ZipfSampler, users: Sequence[str]) -> Record:
    # The number makes it unique; the random part before it makes ids independent of the order of creation.
    suffix = f"{rng.getrandbits(32):08x}{number:06x}"
    name = topics.draw(rng.choices((1, 2, 3, 4), weights=(2, 5, 3, 1))[0])
    created = _FIRST_TIMESTAMP + timedelta(seconds=rng.randrange(_TIMESTAMP_RANGE_SECONDS))
    defined = created + timedelta(days=rng.randrange(400))
    updated = int((defined - datetime(1970, 1, 1)).total_seconds()) * 1000
    return {
        "id": f"trm_{suffix}",
        "name": " ".join(name),
        "alias": _generate_alias(name, rng, topics),
        "definition_text": _generate_definition(rng, prose),
        "id_concept_class": str(rng.choice(CLASSES)["id"]) if rng.random() < 0.8 else "",
        "id_user": rng.choice(users),
        "event_stamp": created.isoformat(),
        "def_id": f"def_{suffix}",
        "def_id_user": rng.choice(users),
        "def_event_stamp": defined.isoformat(),
        "creation_time": updated,
        "last_updated": updated,
    }


def _generate_alias(name: Sequence[str], rng: Random, topics: ZipfSampler) -> str:
    if rng.random() < 0.6:
        return ""
    aliases = [" ".join(topics.draw(2)) for _ in range(rng.randint(1, 2))]
    if len(name) > 1:
        aliases.append("".join(word[0] for word in name).upper())
    return ("; " if rng.random() < 0.1 else ", ").join(aliases)


def _generate_definition(rng: Random, prose: ZipfSampler) -> str:
    if rng.random() < 0.04:
        return rng.choice(("", _PLACEHOLDER_DEFINITION))
    sentences = [_generate_sentence(rng, prose) for _ in range(rng.choices((1, 2, 3), weights=(5, 3, 1))[0])]
    return ("\n" if rng.random() < 0.1 else " ").join(sentences)


def _generate_sentence(rng: Random, prose: ZipfSampler) -> str:
    words = prose.draw(rng.randint(8, 24))
    if rng.random() < 0.1:
        words[-1] = f'"{words[-1]}"'
    return " ".join(words).capitalize() + "."
