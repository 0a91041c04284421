"""Stop words and stems of words, by language."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache

from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

from lexarium.domain.text.languages import get_primary_subtag
from lexarium.search.analysis.plurals import find_irregular_singular
from lexarium.search.analysis.spelling import normalize_spelling

ENGLISH = "en"
# Stemmers of tantivy, by the primary subtag of the language.
_STEMMER_PAIRS = """
    ar=arabic da=danish de=german el=greek en=english es=spanish fi=finnish fr=french hu=hungarian it=italian
    nb=norwegian nl=dutch nn=norwegian no=norwegian pt=portuguese ro=romanian ru=russian sv=swedish ta=tamil tr=turkish
"""
_STEMMERS = dict(pair.split("=") for pair in _STEMMER_PAIRS.split())
STEMMED_LANGUAGES = tuple(_STEMMERS)
# Those whose compound words are written without spaces.
COMPOUNDING_LANGUAGES = frozenset(("da", "de", "fi", "hu", "nb", "nl", "nn", "no", "sv"))
_CACHE_SIZE = 200_000

# Labels that contain the stop words of a query rank first; definitions are not searched for them. Folded.
_STOP_WORD_LISTS = {
    ENGLISH: """
        a able about after all also am an and any are as at be because been before being between but by can cannot cant
        could did didnt do does doesnt doing dont during each every for from had has have having he her his how i if im
        in into is isnt it its ive just may me might much must my not of on or other others our ours she should so some
        someone something such than that thats the their them then there these they this through to too until us very
        was we were what whats when where which while who whom whose why will with within without wont would you your
    """,
    "de": """
        aber als am an auf aus bei bin bis da das dass dem den der des die durch ein eine einem einen einer eines er es
        fur hat ich ihr im in ins ist kann man mein mit nach nicht oder sein sich sie sind so um und uns unter vom von
        vor was wenn wer wie wird zu zum zur
    """,
    "es": """
        a al como con cual de del donde el ella en entre es esta este ha la las le lo los me mi mis muy no nos o para
        pero por porque que se ser si sin sobre son su sus te tu un una unas uno unos y ya
    """,
    "fi": "ei etta han ja jos joka kanssa kuin kun me mika mina mutta myos ne niin nyt on ole olla se tai tama vain",
    "fr": """
        a au aux avec c ce ces cette comme d dans de des du elle en est et etre eux il ils j je l la le les leur ma mais
        me mes mon n ne nous on ou par pas plus pour qu que qui s sa se ses son sont sur ta te tes toi ton tu un une
        vous y
    """,
    "it": """
        a ad ai al alla alle anche c che chi ci come con cui d da dal dalla dei del della delle di e ed gli ha i il in
        io l la le lo ma mi ne nei nel nella non o per piu quale se si sono su sul sulla tra un una uno
    """,
    "nl": """
        aan al als bij dan dat de der deze die dit door een en er het hij hoe ik in is je kan maar me met mijn naar niet
        of om onder ook op over te tot uit van voor wat we wie wordt ze zich zij zijn
    """,
    "pt": """
        a ao aos as com como da das de do dos e ela ele em entre esta este eu mais mas me meu na nao nas no nos o os ou
        para pela pelo por qual que quem se sem ser seu sua um uma
    """,
    "sv": "att av da de dem den det du ej ett en for fran han har hon hur i inte jag kan man med min nar och om pa ska "
    "som till ut vad var vi",
}
_STOP_WORDS = {language: frozenset(words.split()) for language, words in _STOP_WORD_LISTS.items()}
STOP_WORDS = _STOP_WORDS[ENGLISH]


@lru_cache(1_000)
def get_stop_words(tags: Iterable[str]) -> frozenset[str]:
    """Return the stop words of languages together."""
    return frozenset().union(*(_STOP_WORDS.get(get_primary_subtag(tag), ()) for tag in tags))


def stem_words(words: Iterable[str], language: str) -> Iterator[str]:
    """Yield the stem of each folded word: one form for all spellings and inflections, as far as they are known."""
    return map(_get_stemmer(language), words)


def stem_word(word: str, language: str) -> str:
    """Return the stem of a folded word."""
    return _get_stemmer(language)(word)


@cache
def _get_stemmer(language: str) -> Callable[[str], str]:
    """Return a function that stems words of a language; in an unknown one they are as they are."""
    if language not in _STEMMERS:
        return str
    filtered = TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.stemmer(_STEMMERS[language]))
    analyze = filtered.build().analyze

    @lru_cache(_CACHE_SIZE)
    def stem(word: str) -> str:
        normalized = _normalize_english(word) if language == ENGLISH else word
        return (analyze(normalized) or [word])[0]

    return stem


def _normalize_english(word: str) -> str:
    word = normalize_spelling(find_irregular_singular(word) or word)
    return word[:-2] + "es" if word.endswith("sis") else word  # hypothesis, hypotheses
