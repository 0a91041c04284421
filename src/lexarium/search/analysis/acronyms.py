"""List the acronyms of a name: the initials of its words, and an abbreviation in brackets at its end."""

import re

from lexarium.search.analysis.folding import FoldedText, fold
from lexarium.search.analysis.languages import ENGLISH, get_stop_words

MIN_ACRONYM_CHARS = 2
MAX_ACRONYM_CHARS = 10
_BRACKETS_AT_END = re.compile(r"[(\[]([^()\[\]]{2,20})[)\]][\s.]{0,2}$")
_MAX_END_CHARS = 30
# Parts of words that often have an initial of their own: electroencephalography is EEG, posttraumatic PT.
_COMBINING_FORMS = re.compile(
    "(adreno|broncho|cardio|cerebro|cortico|cyto|electro|encephalo|fronto|gastro|genito|glio|graph|gram|hyper|immuno"
    "|inter|intra|leuko|magneto|megalo|micro|muco|myelo|myo|neuro|oculo|osteo|papillo|parieto|poly|post|psycho|spectro"
    "|spino|temporo|thrombo|tomo|vaso|virus|visuo)"
)
_COMBINING_STARTS = frozenset(form[:3] for form in _COMBINING_FORMS.pattern.strip("()").split("|"))


def list_acronyms(text: str, tag: str, folded: FoldedText | None = None) -> list[str]:
    """Return the acronyms of a name or alias in a language, folded."""
    stop_words = get_stop_words((ENGLISH, tag))
    abbreviation = find_abbreviation(text)
    if abbreviation:
        folded = fold(_BRACKETS_AT_END.sub("", text))
    words = (folded or fold(text)).words[: 2 * MAX_ACRONYM_CHARS]
    variants = {abbreviation}
    if len(words) > 1:
        initials = "".join(map(_get_initial, words))
        variants |= {initials, "".join(_get_initial(word) for word in words if word not in stop_words)}
    if not _COMBINING_STARTS.isdisjoint(word[:3] for word in words):
        variants.add("".join(_list_initials(word) for word in words if word not in stop_words))
    return [variant for variant in variants if MIN_ACRONYM_CHARS <= len(variant) <= MAX_ACRONYM_CHARS]


def find_abbreviation(text: str) -> str:
    """Return the abbreviation in brackets at the end of a text, folded; an empty text if there is none."""
    match = _BRACKETS_AT_END.search(text, len(text) - _MAX_END_CHARS) if ")" in text[-3:] or "]" in text[-3:] else None
    key = fold(match[1]).key if match else ""
    return key if MIN_ACRONYM_CHARS <= len(key) <= MAX_ACRONYM_CHARS else ""


def _get_initial(word: str) -> str:
    return word if word.isdigit() else word[0]


def _list_initials(word: str) -> str:
    """Return the initials of the parts of a word, if it begins with a combining form."""
    if not _COMBINING_FORMS.match(word):
        return _get_initial(word)
    return "".join(part[0] for part in _COMBINING_FORMS.split(word) if len(part) > 2)
