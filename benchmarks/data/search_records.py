"""Generate records with realistic, mostly distinct names.

Words follow Zipf's law. A seed always gives the same records, and records are generated one at a time.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

from benchmarks.data.generated import CLASSES, PREFIXES, STEMS, STOP_WORDS, SUFFIXES, TOPIC_WORDS, ZipfSampler
from benchmarks.data.records import Record

_MORE_TOPICS = "n-back behaviour colour Alzheimer's"
_MORE_PREFIXES = "psycho audio lexi electro"
_LINKS = "o i a e"


def generate_search_records(count: int, seed: int = 1) -> Iterator[Record]:
    """Yield concepts, the same ones for the same seed."""
    rng = Random(seed)
    prefixes = [*PREFIXES.split(), *_MORE_PREFIXES.split()]
    simple_words = ["".join(parts) for parts in product(prefixes, STEMS.split(), SUFFIXES.split())]
    linked_words = ["".join(parts) for parts in product(STEMS.split(), _LINKS.split(), STEMS.split(), SUFFIXES.split())]
    rare_words = simple_words + linked_words
    rng.shuffle(rare_words)
    common_words = [*TOPIC_WORDS.split(), *_MORE_TOPICS.split()]
    topics = ZipfSampler(common_words + rare_words, rng, smoothing=8)
    prose = ZipfSampler(STOP_WORDS.split() + common_words + rare_words, rng, smoothing=8)
    for number in range(count):
        suffix = f"{rng.getrandbits(32):08x}{number:06x}"
        name = topics.draw(rng.choices((1, 2, 3, 4), weights=(1, 5, 4, 2))[0])
        yield {
            "id": f"trm_{suffix}",
            "name": " ".join(name),
            "alias": _generate_alias(name, rng, topics),
            "definition_text": _generate_definition(rng, prose),
            "id_concept_class": str(rng.choice(CLASSES)["id"]) if rng.random() < 0.8 else "",
            "id_user": "usr_0000000000",
            "event_stamp": "2020-01-01T00:00:00",
            "def_id": f"def_{suffix}",
            "def_id_user": "usr_0000000000",
            "def_event_stamp": "2020-01-01T00:00:00",
            "creation_time": 1_577_836_800_000,
            "last_updated": 1_577_836_800_000,
        }


def _generate_alias(name: Sequence[str], rng: Random, topics: ZipfSampler) -> str:
    if rng.random() < 0.6:
        return ""
    aliases = [" ".join(topics.draw(rng.randint(2, 3))) for _ in range(rng.randint(1, 2))]
    if len(name) > 2:
        aliases.append("".join(word[0] for word in name).upper())
    return ", ".join(aliases)


def _generate_definition(rng: Random, prose: ZipfSampler) -> str:
    if rng.random() < 0.04:
        return ""
    sentences = [
        " ".join(prose.draw(rng.randint(8, 24))).capitalize() + "."
        for _ in range(rng.choices((1, 2, 3), weights=(5, 3, 1))[0])
    ]
    return " ".join(sentences)
