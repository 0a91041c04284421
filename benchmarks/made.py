"""A made catalogue of any size.

Words follow Zipf's law, as in real text, so that indexes, compression and caches meet a realistic mix of
frequent and rare words. The same seed gives the same records, and records come one at a time.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate, islice, product
from random import Random

from benchmarks.records import Record

_CLASS_NAMES = ("Seeing", "Hearing", "Acting", "Recalling", "Choosing", "Feeling")
CLASSES: tuple[Record, ...] = tuple(
    {"id": f"ctp_M{number}", "name": name, "description": name} for number, name in enumerate(_CLASS_NAMES, start=1)
)

LITTLE_WORDS = """
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
# Every front with every stem and every ending: the long tail of words that few records hold.
FRONTS = "re inter meta sub para neuro hyper auto pre co trans peri socio proto iso macro"
STEMS = "cept lat mnem grad form vers sens spect mot pend tract sign loc norm fract cogn dur flex sert nav"
ENDINGS = "ion al ive ity ment ance ing ure or ization ism ary"
_SYLLABLES = [
    first + middle + last for first in "bdfgklmnprstvwz" for middle in "aeiou" for last in ("", "ck", "l", "n")
]

_FIRST_STAMP = datetime(2009, 1, 1)
_STAMP_SECONDS = 16 * 365 * 24 * 3600
_SYSTEM_USER = "usr_0000000000"
_PLACEHOLDER = "Nobody has defined this term yet."


class Words:
    """Draws words by rank: the word at rank r comes about 1/r as often as the first."""

    def __init__(self, words: Sequence[str], random: Random, flatter: int = 2) -> None:
        """The more `flatter`, the less the first words stand out."""
        self._words = words
        self._weights = list(accumulate(1 / (rank + flatter) for rank in range(len(words))))
        self._random = random

    def draw(self, count: int) -> list[str]:
        return self._random.choices(self._words, cum_weights=self._weights, k=count)


def made_records(count: int, seed: int = 1) -> Iterator[Record]:
    """Yield `count` concepts with every field of the read interface, the same ones for the same seed."""
    random = Random(seed)
    rare = _rare(random)
    topics = Words(TOPIC_WORDS.split() + rare, random)
    prose = Words(LITTLE_WORDS.split() + TOPIC_WORDS.split() + rare, random)
    users = [_SYSTEM_USER, *(f"usr_{random.getrandbits(52):013x}" for _ in range(40))]
    for number in range(count):
        yield _record(number, random, topics, prose, users)


def made_names(count: int, seed: int = 1) -> list[str]:
    """So many names like those of the records, each once."""
    random = Random(seed)
    topics = Words(TOPIC_WORDS.split() + _rare(random), random)
    found: dict[str, None] = {}
    while len(found) < count:
        words = iter(topics.draw(100_000))
        for length in random.choices((1, 2, 3, 4), weights=(2, 5, 3, 1), k=25_000):
            found[" ".join(islice(words, length))] = None
    return list(found)[:count]


class MadeText:
    """Prose in which names are mentioned, among twenty thousand ordinary words that are in none of the names."""

    def __init__(self, names: Sequence[str], seed: int = 1) -> None:
        self._random = Random(seed)
        self._names = names
        ordinary = [
            "".join(self._random.choices(_SYLLABLES, k=self._random.choice((1, 2, 2, 3)))) for _ in range(20_000)
        ]
        self._words = Words(LITTLE_WORDS.split() + ordinary, self._random)

    def text(self, characters: int, mention_every: int) -> str:
        """So many characters with a mention about every so many; another text each time."""
        words = iter(self._words.draw(characters // 2))
        found: list[str] = []
        length = mentioned = 0
        while length < characters:
            if length >= mentioned:
                word = self._random.choice(self._names)
                mentioned += mention_every
            else:
                word = next(words)
            found.append(word + self._random.choices((" ", ", ", ". ", "\n"), weights=(80, 6, 6, 8))[0])
            length += len(found[-1])
        return "".join(found)[:characters]


def _rare(random: Random) -> list[str]:
    rare = ["".join(parts) for parts in product(FRONTS.split(), STEMS.split(), ENDINGS.split())]
    random.shuffle(rare)
    return rare


def _record(number: int, random: Random, topics: Words, prose: Words, users: Sequence[str]) -> Record:
    # The number makes it unique; the random half before it keeps ids out of the order of creation.
    suffix = f"{random.getrandbits(32):08x}{number:06x}"
    name = topics.draw(random.choices((1, 2, 3, 4), weights=(2, 5, 3, 1))[0])
    created = _FIRST_STAMP + timedelta(seconds=random.randrange(_STAMP_SECONDS))
    defined = created + timedelta(days=random.randrange(400))
    updated = int((defined - datetime(1970, 1, 1)).total_seconds()) * 1000
    return {
        "id": f"trm_{suffix}",
        "name": " ".join(name),
        "alias": _alias(name, random, topics),
        "definition_text": _definition(random, prose),
        "id_concept_class": str(random.choice(CLASSES)["id"]) if random.random() < 0.8 else "",
        "id_user": random.choice(users),
        "event_stamp": created.isoformat(),
        "def_id": f"def_{suffix}",
        "def_id_user": random.choice(users),
        "def_event_stamp": defined.isoformat(),
        "creation_time": updated,
        "last_updated": updated,
    }


def _alias(name: Sequence[str], random: Random, topics: Words) -> str:
    if random.random() < 0.6:
        return ""
    aliases = [" ".join(topics.draw(2)) for _ in range(random.randint(1, 2))]
    if len(name) > 1:
        aliases.append("".join(word[0] for word in name).upper())
    return ("; " if random.random() < 0.1 else ", ").join(aliases)


def _definition(random: Random, prose: Words) -> str:
    if random.random() < 0.04:
        return random.choice(("", _PLACEHOLDER))
    sentences = [_sentence(random, prose) for _ in range(random.choices((1, 2, 3), weights=(5, 3, 1))[0])]
    return ("\n" if random.random() < 0.1 else " ").join(sentences)


def _sentence(random: Random, prose: Words) -> str:
    words = prose.draw(random.randint(8, 24))
    if random.random() < 0.1:
        words[-1] = f'"{words[-1]}"'
    return " ".join(words).capitalize() + "."
