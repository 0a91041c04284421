"""Forms of English nouns, such as the labels of classes."""

# Beginnings that sound like a consonant: a user, a unit, a eulogy.
_CONSONANT_SOUNDS = ("eu", "one", "uni", "us")


def pluralize(noun: str) -> str:
    """Return the plural of a noun by the regular rules, as in "batteries", "classes" and "analyses"."""
    if noun.endswith("sis"):
        return f"{noun[:-2]}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")


def add_article(noun: str) -> str:
    """Return a noun with its indefinite article, as in "an indicator"."""
    folded = noun.lower()
    is_vowel = folded.startswith(("a", "e", "i", "o", "u")) and not folded.startswith(_CONSONANT_SOUNDS)
    return f"{'an' if is_vowel else 'a'} {noun}"
