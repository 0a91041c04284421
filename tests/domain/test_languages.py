"""Language tags, and the choice of a language that a reader understands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexarium.domain.errors import InvalidInput
from lexarium.domain.labels import is_language_tag
from lexarium.domain.text.languages import (
    canonicalize_tag,
    choose_language,
    find_tag_problem,
    format_tag,
    parse_accept_language,
)


@pytest.mark.parametrize(
    ("tag", "canonical"),
    [
        ("EN", "en"),
        ("EN-gb", "en-GB"),
        ("zh-hant-tw", "zh-Hant-TW"),
        ("SR-LATN", "sr-Latn"),
        ("es-419", "es-419"),
        ("sl-ROZAJ-Biske", "sl-rozaj-biske"),
        ("de-CH-1901", "de-CH-1901"),
        ("zh-CMN-Hans-cn", "zh-cmn-Hans-CN"),
        ("EN-us-U-CA-Gregory", "en-US-u-ca-gregory"),
        ("de-De-X-GOETHE-Ab", "de-DE-x-goethe-ab"),
        ("X-Klingon-US", "x-klingon-us"),
        # Kept, though they have replacements: the tag is what the owner wrote.
        ("I-KLINGON", "i-klingon"),
        ("en-gb-OED", "en-GB-oed"),
        ("SGN-be-fr", "sgn-BE-FR"),
        ("IW", "iw"),
        ("zxx", "zxx"),
        ("und", "und"),
        ("ja-hira-jp", "ja-Hira-JP"),
    ],
)
def test_a_tag_is_written_in_canonical_form(tag: str, canonical: str) -> None:
    assert canonicalize_tag(tag) == canonical
    assert canonicalize_tag(canonical) == canonical


@pytest.mark.parametrize(
    "tag",
    [
        *(
            "",
            "e",
            "english language",
            "en-",
            "-en",
            "en--GB",
            "en-GB-",
            "en-x",
            "en-a",
            "en-GB-foo",
            "de-419-DE",
            "123",
        ),
        *("en GB", "ën", "x", "abcdefghi", "en-abcdefghi", "en\n", "i-unknown", "en-u-", "K" + "\u212a"),
        *("sl-rozaj-rozaj", "en-a-bbb-a-ccc", "de-1901-1901"),
    ],
)
def test_an_invalid_tag_is_rejected_with_one_sentence(tag: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        canonicalize_tag(tag)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_the_problem_of_an_underscore_suggests_a_hyphen() -> None:
    assert find_tag_problem("pt_br") == "'pt_br' is not a language tag, such as en, pt-BR or zh-Hant. Write pt-br."


@given(st.from_regex(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8}){0,4}", fullmatch=True))
def test_formatting_a_tag_changes_only_its_case(tag: str) -> None:
    assert is_language_tag(tag)
    written = format_tag(tag)
    assert written.lower() == tag.lower()
    assert format_tag(written) == written == format_tag(tag.swapcase())
    assert (find_tag_problem(written) is None) == (find_tag_problem(tag) is None)


@given(st.text(max_size=20))
def test_every_valid_tag_matches_the_syntax_of_tags(text: str) -> None:
    format_tag(text)
    assert find_tag_problem(text) is not None or is_language_tag(text)


@pytest.mark.parametrize(
    ("available", "wanted", "default", "chosen"),
    [
        (["de", "en-GB", "en"], "en-GB", "de", "en-GB"),
        (["de", "EN-gb"], "en-GB", "de", "EN-gb"),
        (["de", "en"], "en-GB", "de", "en"),
        (["de", "en-US"], "en-GB", "de", "en-US"),
        (["de", "en-US"], "en", "de", "en-US"),
        (["fr", "de"], "en-GB", "de", "de"),
        (["fr", "de-AT"], "en", "de", "de-AT"),
        (["fr", "es"], "en", "de", "fr"),
        ([], "en", "de", None),
        # A text without a tag is in the default language.
        (["fr", ""], "de-CH", "de", ""),
        (["", "de"], "de", "de", "de"),
        (["", "fr"], "en", "de", ""),
        (["", "fr"], "fr", "de", "fr"),
        (["fr", ""], "", "de", ""),
        ([""], "en", "", ""),
        # Several wanted languages, as in Accept-Language.
        (["fr", "es"], ["de", "es-MX", "fr"], "en", "es"),
        (["fr", "en"], ["de", "*", "fr"], "en", "en"),
        (["fr", "es"], ["*"], "en", "fr"),
        (["fr"], [], "en", "fr"),
        # Parts before a single letter, old tags, private use.
        (["zh", "en"], "zh-Hant-u-co-stroke", "en", "zh"),
        (["he", "en"], "iw", "en", "he"),
        (["i-klingon", "en"], "tlh", "en", "i-klingon"),
        (["en", "en-GB-oxendict"], "en-GB-oed", "fr", "en-GB-oxendict"),
        (["x-a", "en"], "x-b", "en", "en"),
        (["x-ab", "en"], "x-ab-cd", "en", "x-ab"),
    ],
)
def test_the_closest_available_language_is_chosen(
    available: list[str], wanted: str | list[str], default: str, chosen: str | None
) -> None:
    assert choose_language(available, wanted, default) == chosen


@given(st.lists(st.text(max_size=8), max_size=4), st.text(max_size=8), st.text(max_size=8))
def test_a_language_is_chosen_whenever_any_is_available(available: list[str], wanted: str, default: str) -> None:
    chosen = choose_language(available, wanted, default)
    assert chosen in available if available else chosen is None


@pytest.mark.parametrize(
    ("header", "languages"),
    [
        ("en-gb,en;q=0.8, de;q=0.9", ("en-GB", "de", "en")),
        ("de;q=0.5,fr;q=0.5", ("de", "fr")),
        ("*;q=0.1, fr", ("fr", "*")),
        ("da, en;q=0", ("da",)),
        ("en;q=0.2,EN;q=0.7,de;q=0.5", ("en", "de")),
        ("fr ; Q = 1.000", ("fr",)),
        ("en;q=,de;q=2,fr;q=nan,es;q=-1,it;q=0.1234,pt;level=1,sv", ("sv",)),
        (",,;q=1,en_GB,<script>,de-*", ()),
        ("", ()),
        (None, ()),
    ],
)
def test_accept_language_is_parsed_in_order_of_preference(header: str | None, languages: tuple[str, ...]) -> None:
    assert parse_accept_language(header) == languages


@given(st.text() | st.from_regex(r"([a-z*-]{0,5}(;q=[0-9.]{0,4})?,){0,9}", fullmatch=True))
def test_accept_language_never_raises(header: str) -> None:
    languages = parse_accept_language(header)
    assert len(set(languages)) == len(languages)


def test_a_long_header_is_truncated() -> None:
    assert len(parse_accept_language(",".join(f"en-x-{number}" for number in range(100_000)))) == 50
