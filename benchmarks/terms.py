"""A made catalogue for finding: names that look real and are mostly unlike each other, of any size.

Words follow Zipf's law, as in real text. The same seed gives the same records, and records come one at a time.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, product
from random import Random

from benchmarks.made import CLASSES
from benchmarks.records import Record

_LITTLE_WORDS = """
    the of and a to in that is by with for as or on which from an it when are between during this not their
    into more than each one at before after without about its how
"""
_TOPIC_WORDS = """
    memory attention control learning recall response stimulus visual task spatial emotion language working
    perception verbal motor reward decision auditory inhibition recognition fear semantic social judgment cue
    delay conflict face word object sequence reasoning prediction error switching planning imagery rehearsal
    salience threshold category intention arousal habit orientation retrieval belief effort vigilance fluency
    priming naïveté déjà-vu n-back behaviour colour Alzheimer's
"""
_FRONTS = "re inter meta sub para neuro hyper auto pre co trans peri socio proto iso macro psycho audio lexi electro"
_STEMS = "cept lat mnem grad form vers sens spect mot pend tract sign loc norm fract cogn dur flex sert nav"
_LINKS = "o i a e"
_ENDINGS = "ion al ive ity ment ance ing ure or ization ism ary"


class _Words:
    """Draws words by rank: the word at rank r comes about 1/r as often as the first."""

    def __init__(self, words: Sequence[str], random: Random) -> None:
        self._words = words
        self._weights = list(accumulate(1 / (rank + 8) for rank in range(len(words))))
        self._random = random

    def draw(self, count: int) -> list[str]:
        return self._random.choices(self._words, cum_weights=self._weights, k=count)


def made_terms(count: int, seed: int = 1) -> Iterator[Record]:
    """Yield `count` concepts, the same ones for the same seed."""
    random = Random(seed)
    simple = ["".join(parts) for parts in product(_FRONTS.split(), _STEMS.split(), _ENDINGS.split())]
    linked = ["".join(parts) for parts in product(_STEMS.split(), _LINKS.split(), _STEMS.split(), _ENDINGS.split())]
    rare = simple + linked
    random.shuffle(rare)
    topics = _Words(_TOPIC_WORDS.split() + rare, random)
    prose = _Words(_LITTLE_WORDS.split() + _TOPIC_WORDS.split() + rare, random)
    for number in range(count):
        suffix = f"{random.getrandbits(32):08x}{number:06x}"
        name = topics.draw(random.choices((1, 2, 3, 4), weights=(1, 5, 4, 2))[0])
        yield {
            "id": f"trm_{suffix}",
            "name": " ".join(name),
            "alias": _alias(name, random, topics),
            "definition_text": _definition(random, prose),
            "id_concept_class": str(random.choice(CLASSES)["id"]) if random.random() < 0.8 else "",
            "id_user": "usr_0000000000",
            "event_stamp": "2020-01-01T00:00:00",
            "def_id": f"def_{suffix}",
            "def_id_user": "usr_0000000000",
            "def_event_stamp": "2020-01-01T00:00:00",
            "creation_time": 1_577_836_800_000,
            "last_updated": 1_577_836_800_000,
        }


def _alias(name: Sequence[str], random: Random, topics: _Words) -> str:
    if random.random() < 0.6:
        return ""
    aliases = [" ".join(topics.draw(random.randint(2, 3))) for _ in range(random.randint(1, 2))]
    if len(name) > 2:
        aliases.append("".join(word[0] for word in name).upper())
    return ", ".join(aliases)


def _definition(random: Random, prose: _Words) -> str:
    if random.random() < 0.04:
        return ""
    sentences = [
        " ".join(prose.draw(random.randint(8, 24))).capitalize() + "."
        for _ in range(random.choices((1, 2, 3), weights=(5, 3, 1))[0])
    ]
    return " ".join(sentences)
