"""Word folding: which spellings are equal."""

import time

import pytest

from lexarium.search.analysis.folding import find_words, fold, split_raw_words

EQUAL_PAIRS = [
    ("Working Memory", "working memory"),
    ("naïveté", "NAIVETE"),
    ("déjà-vu", "deja vu"),
    ("n-back task", "nback task"),
    ("n-back task", "N back task"),
    ("go/no-go", "go no go"),
    ("Alzheimer's disease", "alzheimers disease"),
    ("Alzheimer’s disease", "Alzheimer's disease"),
    ("e\u0301tude", "étude"),
    ("Straße", "STRASSE"),
    ("œuvre", "oeuvre"),
    ("ﬁxation", "fixation"),
    ("behaviour", "behavior"),
    ("behavioural inhibition", "behavioral inhibition"),
    ("colour-blindness", "color blindness"),
    ("organisation", "organization"),
    ("generalised anxiety", "generalized anxiety"),
    ("analyse", "analyze"),
    ("centre", "center"),
    ("labelled", "labeled"),
    ("modelling", "modeling"),
    ("dialogue", "dialog"),
    ("anaesthesia", "anesthesia"),
    ("kinaesthesia", "kinesthesia"),
    ("synaesthetic", "synesthetic"),
    ("haemorrhage", "hemorrhage"),
    ("paediatric", "pediatric"),
    ("foetal alcohol syndrome", "fetal alcohol syndrome"),
    ("oestrogen", "estrogen"),
    ("aetiology", "etiology"),
    ("judgement", "judgment"),
    ("ageing", "aging"),
    ("grey matter", "gray matter"),
    ("programme", "program"),
    ("defence", "defense"),
]
DIFFERENT_PAIRS = [
    ("hour", "hor"),
    ("course", "corse"),
    ("four", "for"),
    ("poet", "pet"),
    ("shoe", "she"),
    ("filling", "filing"),
    ("memory", "memories"),
    ("C", "C++ compiler"),
]


@pytest.mark.parametrize(("first", "second"), EQUAL_PAIRS)
def test_spelling_variants_of_a_name_have_one_key(first: str, second: str) -> None:
    assert fold(first).key == fold(second).key


@pytest.mark.parametrize(("first", "second"), DIFFERENT_PAIRS)
def test_different_words_have_different_keys(first: str, second: str) -> None:
    assert fold(first).key != fold(second).key


def test_each_word_has_its_position_in_the_original_text() -> None:
    text = "The  déjà-vu: ‘Straße’ e\u0301tude"
    assert [(word.text, text[word.start : word.end]) for word in find_words(text)] == [
        ("the", "The"),
        ("deja", "déjà"),
        ("vu", "vu"),
        ("strasse", "Straße"),
        ("etude", "e\u0301tude"),
    ]


def test_a_name_of_symbols_only_has_a_key() -> None:
    assert fold("∞").key
    assert fold("∞").key != fold("+ -").key == fold("+-").key
    assert fold("").key == fold(" \t").key == ""


def test_a_word_has_several_forms_for_search() -> None:
    assert set(fold("Behavioural n-back").word_forms) == {"behavioral", "behavioural", "n", "back", "nback"}
    assert set(fold("n-back behaviour").first_word_forms) == {"n", "nback"}


@pytest.mark.parametrize("text", ["हिन्दी", "עברית", "العربية", "ελληνικά", "русский"])
def test_words_of_any_script_are_recognized(text: str) -> None:
    assert len(find_words(text)) == 1
    assert fold(text).words == fold(text.upper()).words != [""]


def test_each_character_is_a_word_in_scripts_without_spaces() -> None:
    assert fold("日本語 abc").words == ["日", "本", "語", "abc"]
    assert list(split_raw_words("日本語abc n-back, go")) == ["日本語", "abc", "n-back", "go"]


@pytest.mark.full
def test_folding_takes_linear_time() -> None:
    def measure_seconds(text: str) -> float:
        started = time.thread_time()
        fold(text)
        find_words(text)
        return time.thread_time() - started

    for unit in ("a", "é", "a'", "a-", "a -", "\u0301", "工", "-"):
        long = max(1e-4, min(measure_seconds(unit * 20_000 + " -") for _ in range(3)))
        assert min(measure_seconds(unit * 80_000 + " -") for _ in range(3)) < 12 * long
