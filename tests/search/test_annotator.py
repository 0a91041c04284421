"""Annotator, compared with a naive implementation."""

import re
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lexarium.search import annotator_file
from lexarium.search.analysis.words import MAX_ANNOTATED_WORD_CHARS, MAX_GAP_CHARS, normalize_word, split_words
from lexarium.search.annotator import Annotator, DictionaryTerm, _MentionScanner
from lexarium.search.annotator_file import AnnotatorFile, AnnotatorState, FileDamaged
from lexarium.search.index import IndexedVocabulary

COLLECTION_NAMES = ("concept", "task")
STATE = AnnotatorState("epoch", 7, 2, {"main": IndexedVocabulary("1", ("concept", "task"))})


def build_annotator(*labels: str, **labels_by_id: list[str]) -> Annotator:
    """Build an annotator: positional labels get a record each, keyword arguments give the labels of one record."""
    new_annotator = Annotator()
    for record_id, names in {**{label: [label] for label in labels}, **labels_by_id}.items():
        new_annotator.add(DictionaryTerm(record_id, record_id, "concept"), names)
    return new_annotator


def find_mentions(finder: Annotator, *chunks: str) -> list[tuple[int, int, str]]:
    """Return each mention with the ids of its terms."""
    return [
        (mention.start, mention.end, ",".join(sorted(term.id for term in mention.terms)))
        for batch in finder.find_mentions(chunks, COLLECTION_NAMES)
        for mention in batch
    ]


def list_mention_texts(finder: Annotator, text: str) -> list[str]:
    return [text[start:end] for start, end, _ in find_mentions(finder, text)]


def test_the_leftmost_then_longest_name_matches() -> None:
    finder = build_annotator("working memory", "working", "memory task", "working memory task set", "a b c", "b")
    assert list_mention_texts(finder, "a working memory task") == ["working memory"]
    assert list_mention_texts(finder, "a b d") == ["b"]


def test_a_longer_name_that_ends_within_a_word_does_not_hide_a_shorter_one() -> None:
    assert list_mention_texts(build_annotator("working", "working mem"), "working memory") == ["working"]


@pytest.mark.parametrize(
    ("label", "text", "expected"),
    [
        ("working memory", "WORKING MEMORY", "WORKING MEMORY"),
        ("working memory", "working\nmemory", "working\nmemory"),
        ("working memory", "(working-\r\n   memory)", "working-\r\n   memory"),
        ("working memory", "working_memory", "working_memory"),
        ("working memory", "x working memories y", "working memories"),
        ("Memories", "a memory", "memory"),
        ("n-back", "the n back", "n back"),
        ("working memory", "working -\n memory", "working -\n memory"),
        ("memory", "-\n\nmemory", "memory"),
        ("go/no-go task", "Go/No-Go tasks", "Go/No-Go tasks"),
        ("go/no-go task", "Go-No-Go task", "Go-No-Go task"),
        ("go/no-go task", "go no-go task", "go no-go task"),
        ("Alzheimer's disease", "Alzheimer’s diseases", "Alzheimer’s diseases"),
        ("Alzheimer's disease", "Alzheimer disease", "Alzheimer disease"),
        ("straße", "STRASSE", "STRASSE"),
        ("naïve", "NAI\u0308VE art", "NAI\u0308VE"),
        ("déjà vu", "deja vu", "deja vu"),
        ("hypothesis", "hypotheses", "hypotheses"),
        ("headache", "headaches", "headaches"),
        ("class", "classes", "classes"),
        ("response bias", "response biases", "response biases"),
        ("stimulus", "stimuli", "stimuli"),
        ("C++", "in C++, too", "C++"),
        ("工作记忆", "他的工作记忆很好", "工作记忆"),
        ("작업기억", "작업기억은", "작업기억"),
        ("זיכרון עבודה", "\u200fזיכרון עבודה\u200f", "זיכרון עבודה"),
        ("ذاكرة", "ذاكِرة", "ذاكِرة"),
        ("working memory", "work\u00ading memory", "work\u00ading memory"),
        ("working memory", "a work\u00ad\ning memory", "work\u00ad\ning memory"),
        ("working memory", "a work-\ning memory", "work-\ning memory"),
        ("working memory", "work\u2010\r\ning memo-\nries", "work\u2010\r\ning memo-\nries"),
        ("self-report", "self-\nreports", "self-\nreports"),
        ("working\n\nmemory", "working memory", "working memory"),
        ("IQ", "their IQs", "IQs"),
        ("IQ", "an IQ's", "IQ's"),
        ("go", "GO", "GO"),
        ("CO2", "CO₂", "CO₂"),
    ],
)
def test_a_name_matches_spelling_variants(label: str, text: str, expected: str) -> None:
    assert list_mention_texts(build_annotator(label), text) == [expected]


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("memory", "memoryless immemory"),
        ("working memory", "working. Memory"),
        ("working memory", "working, memory"),
        ("working memory", "working\n\nmemory"),
        ("working memory", "working\r\n \r\nmemory"),
        ("working memory", "working" + " " * MAX_GAP_CHARS + "memory"),
        ("working memory", "working" + " -" * (MAX_GAP_CHARS // 2) + "memory"),
        ("working memory", "working\n \nmemory"),
        ("working memory", "working\n- memory"),
        ("working memory", "working\n  – memory"),
        ("working memory", "working\n-\nmemory"),
        ("working memory", "working\n-\tmemory"),
        ("working memory", "work-\n\ning memory"),
        ("working memory", "work- ing memory"),
        ("IQ", "iq"),
        ("ACT", "an act, acts, Act"),
        ("g", "G"),
        ("C++", "in C, too"),
        ("thesis", "these"),
        ("", "anything"),
        (" ", "any thing"),
        ("x" * 501, "x" * 501),
        ("?", "what?"),
    ],
)
def test_text_that_does_not_match_the_name_is_not_annotated(label: str, text: str) -> None:
    assert list_mention_texts(build_annotator(label), text) == []


def test_an_ambiguous_name_is_reported_once_per_record() -> None:
    finder = build_annotator(one=["stress", "Stress", "stresses"], two=["Stress"], three=["strain", "stress"])
    assert find_mentions(finder, "stress") == [(0, 6, "one,three,two")]


def test_case_sensitive_and_case_insensitive_names_match_together() -> None:
    finder = build_annotator(test=["ACT"], deed=["act"], both=["ACT", "act"])
    assert find_mentions(finder, "ACT act") == [(0, 3, "both,deed,test"), (4, 7, "both,deed")]


def test_only_requested_collections_are_annotated() -> None:
    finder = build_annotator("memory")
    finder.add(DictionaryTerm("t", "memory span task", "task"), ["memory span task"])
    text = "a memory span task"
    for collections, length in ((COLLECTION_NAMES, 16), (("concept",), 6), (("task",), 16), (("disorder",), None)):
        spans = [
            mention.end - mention.start for batch in finder.find_mentions([text], collections) for mention in batch
        ]
        assert spans == ([] if length is None else [length])


def test_names_are_added_and_removed() -> None:
    finder = build_annotator("memory", "working memory")
    finder.add(DictionaryTerm("memory", "recall", "concept"), ["recall"])
    assert find_mentions(finder, "working memory memory recall") == [(0, 14, "working memory"), (22, 28, "memory")]
    finder.remove("working memory")
    finder.remove("working memory")
    assert find_mentions(finder, "working memory memory recall") == [(22, 28, "memory")]
    assert len(finder) == 1


@pytest.mark.parametrize("label", ["act", "act span", "span memory", "memory in", "recall span"])
def test_an_added_name_is_found_among_known_words(label: str) -> None:
    finder = build_annotator("memory span", "ACT", one=["recall"], other=["recall"])
    finder.remove("one")
    finder.remove("other")
    text = "an act span, a span memory in it, a recall span"
    assert find_mentions(finder, text) == []
    finder.add(DictionaryTerm("new", label, "concept"), [label])
    assert {ids for _, _, ids in find_mentions(finder, text)} == {"new"}
    finder.remove("new")
    assert find_mentions(finder, text) == []


WORDS = [
    "a",
    "A",
    "b",
    "bs",
    "memory",
    "memories",
    "Memory's",
    "mem",
    "ory",
    "AB",
    "ab",
    "é",
    "e\u0301",
    "ß",
    "SS",
    "工",
    "作",
    "x" * 600,
]
GAPS = [
    " ",
    "-",
    "\n",
    "-\n",
    "\n- ",
    "\n\n",
    "\n \n",
    ", ",
    "'",
    "_",
    " " * 40,
    "/",
    "",
    "\u200f",
    "\x00",
    "’",
    "'" * 25,
    "!’" * 12,
]
TEXT = st.lists(st.sampled_from(WORDS + GAPS), max_size=40).map("".join)
LABELS = st.lists(st.lists(st.sampled_from(WORDS + GAPS), min_size=1, max_size=5).map("".join), max_size=8)


def find_mentions_naively(labels: list[str], text: str) -> list[tuple[int, int, str]]:
    """Find mentions by trying every label at every word."""
    label_words = [
        (label, split_words(" ".join(label.split()))[1::2])
        for label in dict.fromkeys(labels)
        if len(label) <= 500 and re.search("[^\\W_]", label)
    ]
    chunks = join_hyphenated(
        split_words(text), {normalize_word(word) for _, own_words in label_words for word in own_words}
    )
    words = [(len("".join(chunks[:at])), chunks[at]) for at in range(1, len(chunks), 2)]
    result = []
    position = 0
    while position < len(words):
        for length in range(len(words) - position, 0, -1):
            window = [word for _, word in words[position : position + length]]
            ids = [label for label, own_words in label_words if words_match(own_words, window)]
            if ids:
                start, last = words[position + length - 1]
                result.append((words[position][0], start + len(last), ",".join(sorted(ids))))
                position += length
                break
        else:
            position += 1
    return result


def join_hyphenated(chunks: list[str], known_forms: set[str]) -> list[str]:
    position = 1
    while position + 2 < len(chunks):
        joined = "".join(chunks[position : position + 3])
        if (
            chunks[position + 1] == "-\n"
            and re.search("\\w", chunks[position])
            and len(joined) <= MAX_ANNOTATED_WORD_CHARS
            and normalize_word(joined.replace("-\n", "")) in known_forms
        ):
            chunks = [*chunks[:position], joined, *chunks[position + 3 :]]
        else:
            position += 2
    return chunks


def words_match(label: list[str], words: list[str]) -> bool:
    if any(len(word) > MAX_ANNOTATED_WORD_CHARS for word in words) or list(map(normalize_word, label)) != list(
        map(normalize_word, words)
    ):
        return False
    label_word, text_word = (
        normalize("NFC", side[0].replace("-\n", "")).replace("’s", "").replace("'s", "") for side in (label, words)
    )
    if len(label) == 1 and re.fullmatch("\\w|[A-Z]{2,4}", label_word):
        return text_word == label_word or (len(label_word) > 1 and text_word == label_word + "s")
    return True


@pytest.mark.parametrize(
    "runs", [pytest.param(100, marks=pytest.mark.short), pytest.param(400, marks=pytest.mark.full)]
)
def test_mentions_equal_those_of_a_naive_search_for_any_chunks_of_text(runs: int) -> None:
    @settings(max_examples=runs, deadline=None)
    @example(labels=["\n\na"], text="A", cuts=[])
    @example(labels=["a"], text="’-\na", cuts=[])
    @given(labels=LABELS, text=TEXT, cuts=st.lists(st.integers(0, 200), max_size=6))
    def check(labels: list[str], text: str, cuts: list[int]) -> None:
        finder = build_annotator(*labels)
        expected = find_mentions(finder, text)
        assert expected == find_mentions_naively(labels, text)
        boundaries = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
        assert find_mentions(finder, *(text[start:end] for start, end in pairwise(boundaries))) == expected
        assert find_mentions(finder, *text) == expected

    check()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.lists(st.sampled_from(["AB", "ab", "b", "ab b", "b a", "a"])))),
    st.lists(st.sampled_from(["AB", "ab", "a", "b", " "]), max_size=8).map(" ".join),
)
def test_updating_names_equals_building_a_new_annotator(changes: list[tuple[str, list[str]]], text: str) -> None:
    finder = Annotator()
    now: dict[str, list[str]] = {}
    for record_id, labels in changes:
        finder.add(DictionaryTerm(record_id, "", "concept"), labels)
        now[record_id] = labels
        assert find_mentions(finder, text) == find_mentions(build_annotator(**now), text)


CHANGES = st.lists(
    st.tuples(st.sampled_from("xyz"), st.lists(st.sampled_from(["AB", "ab", "b", "ab b", "b a", "a", "c"]))), max_size=6
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHANGES, CHANGES, CHANGES, st.lists(st.sampled_from(["AB", "ab", "a", "b", "c"]), max_size=8).map(" ".join))
def test_names_saved_to_a_file_and_changed_since_equal_names_in_memory(
    tmp_path: Path,
    written: list[tuple[str, list[str]]],
    changed: list[tuple[str, list[str]]],
    changed_again: list[tuple[str, list[str]]],
    text: str,
) -> None:
    expected, finder = Annotator(), Annotator()
    for changes in (written, changed, changed_again):
        for record_id, labels in changes:
            for either in (expected, finder):
                either.add(DictionaryTerm(record_id, "", "concept"), labels)
        finder.save(tmp_path / "annotator", STATE)
        finder = Annotator(AnnotatorFile(tmp_path / "annotator"))
        assert find_mentions(finder, text) == find_mentions(expected, text)
        assert len(finder) == len(expected)


def test_names_are_loaded_from_the_file_when_a_text_has_their_first_word(tmp_path: Path) -> None:
    build_annotator("working memory", "working", "memory span").save(tmp_path / "annotator", STATE)
    finder = Annotator(AnnotatorFile(tmp_path / "annotator"))
    assert not finder.trie.root
    assert list_mention_texts(finder, "a span of working memory") == ["working memory"]
    assert list(finder.trie.root) == ["working", "memory"]


def test_a_file_stores_the_state_it_was_built_from(tmp_path: Path) -> None:
    build_annotator("memory").save(tmp_path / "annotator", STATE)
    assert AnnotatorFile(tmp_path / "annotator").state == STATE


def truncate(content: bytes) -> bytes:
    return content[:-1]


def change_byte(content: bytes) -> bytes:
    return content[:40] + bytes([content[40] ^ 1]) + content[41:]


def empty(content: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [truncate, change_byte, empty])
def test_a_damaged_file_is_not_read(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "annotator"
    build_annotator("working memory", "memory").save(path, STATE)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(FileDamaged):
        AnnotatorFile(path)


def test_a_file_of_another_format_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_annotator("memory").save(tmp_path / "annotator", STATE)
    monkeypatch.setattr(annotator_file, "_FORMAT", "another")
    with pytest.raises(FileDamaged):
        AnnotatorFile(tmp_path / "annotator")


def test_a_failed_write_keeps_the_previous_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "annotator"
    build_annotator("memory").save(path, STATE)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(annotator_file.AnnotatorFileWriter, "finish", fail)
    with pytest.raises(OSError, match="No space"):
        build_annotator("recall").save(path, STATE)
    assert path.read_bytes() == before
    assert {file.name for file in tmp_path.iterdir()} == {"annotator", "annotator.lock"}


@given(st.text())
def test_the_words_of_any_text_add_up_to_the_text(text: str) -> None:
    assert "".join(split_words(text)) == text


@given(st.text(), st.text(min_size=1, max_size=20))
def test_annotating_any_text_returns_valid_positions(text: str, label: str) -> None:
    for start, end, _ in find_mentions(build_annotator(label), text):
        assert 0 <= start < end <= len(text)


@pytest.mark.parametrize("char", ["x", " ", "\n", "'", "x'", "\u0301", "工", ".", "\x00", "memory "])
def test_the_memory_for_an_endless_text_is_limited(char: str) -> None:
    reading = _MentionScanner(build_annotator("memory", "memory memory span"), COLLECTION_NAMES)
    open_counts = [len(reading._pending) for _ in reading.find_mentions(char * 2_000 for _ in range(50))]
    assert max(open_counts) < 5_000


@pytest.mark.full
@pytest.mark.parametrize("unit", ["WM-", "工", "WM/工", "a'"])
def test_annotating_takes_linear_time(unit: str) -> None:
    finder = build_annotator("WM", "工")

    def measure_seconds(length: int) -> float:
        started = time.thread_time()
        list_mention_texts(finder, unit * length)
        return time.thread_time() - started

    assert min(measure_seconds(16_000) for _ in range(3)) < 12 * max(
        1e-3, min(measure_seconds(4_000) for _ in range(3))
    )
