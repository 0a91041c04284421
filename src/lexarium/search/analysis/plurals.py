"""Reduce English words to their singular, so that a word and its plural can be compared."""

from functools import lru_cache

# The singular of words that the rules below would get wrong, by each of their forms.
_IRREGULAR = {
    plural: singular
    for singular, *plurals in (
        line.split()
        for line in """
            analysis analyses|axis axes|bias biases|child children|cortex cortices|criterion criteria|foot feet
            focus foci|gyrus gyri|hippocampus hippocampi|index indices|lens lenses|locus loci|man men|matrix matrices
            mouse mice|nucleus nuclei|phenomenon phenomena|schema schemata|stimulus stimuli|sulcus sulci
            thalamus thalami|these|those|tooth teeth|vertex vertices|whose|woman women
        """.replace("\n", "|").split("|")
        if line.strip()
    )
    for plural in (singular, *plurals)
}


def find_irregular_singular(word: str) -> str | None:
    """Return the singular of a word that no rule covers."""
    return _IRREGULAR.get(word)


@lru_cache(200_000)
def singularize(word: str) -> str:
    """Return the common form of the singular and plural of a folded word.

    A plural in `es` does not show whether the singular ends in e (headache, match), so that e is dropped from both.
    """
    if len(word) <= 3:
        return word
    if word in _IRREGULAR or word[-1] not in "se":
        return _IRREGULAR.get(word, word)
    if word.endswith("sis"):
        return word[:-2]  # hypothesis, hypotheses
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if len(word) > 3 and word.endswith("ie"):
        return word[:-2] + "y"
    if len(word) > 3 and word.endswith(("se", "xe", "ze", "che", "she", "oe")):
        return word[:-1]
    return word
