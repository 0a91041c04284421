"""A made catalogue for finding: names that look real and are mostly unlike each other, of any size.

Words follow Zipf's law, as in real text. The same seed gives the same records, and records come one at a time.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

from benchmarks.made import CLASSES, ENDINGS, FRONTS, LITTLE_WORDS, STEMS, TOPIC_WORDS, Words
from benchmarks.records import Record

_MORE_TOPICS = "n-back behaviour colour Alzheimer's"
_MORE_FRONTS = "psycho audio lexi electro"
_LINKS = "o i a e"


def made_terms(count: int, seed: int = 1) -> Iterator[Record]:
    """Yield `count` concepts, the same ones for the same seed."""
    random = Random(seed)
    fronts = [*FRONTS.split(), *_MORE_FRONTS.split()]
    simple = ["".join(parts) for parts in product(fronts, STEMS.split(), ENDINGS.split())]
    linked = ["".join(parts) for parts in product(STEMS.split(), _LINKS.split(), STEMS.split(), ENDINGS.split())]
    rare = simple + linked
    random.shuffle(rare)
    common = [*TOPIC_WORDS.split(), *_MORE_TOPICS.split()]
    topics = Words(common + rare, random, flatter=8)
    prose = Words(LITTLE_WORDS.split() + common + rare, random, flatter=8)
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


def _alias(name: Sequence[str], random: Random, topics: Words) -> str:
    if random.random() < 0.6:
        return ""
    aliases = [" ".join(topics.draw(random.randint(2, 3))) for _ in range(random.randint(1, 2))]
    if len(name) > 2:
        aliases.append("".join(word[0] for word in name).upper())
    return ", ".join(aliases)


def _definition(random: Random, prose: Words) -> str:
    if random.random() < 0.04:
        return ""
    sentences = [
        " ".join(prose.draw(random.randint(8, 24))).capitalize() + "."
        for _ in range(random.choices((1, 2, 3), weights=(5, 3, 1))[0])
    ]
    return " ".join(sentences)
