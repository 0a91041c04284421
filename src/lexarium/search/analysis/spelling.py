"""Normalize British and American spelling to one form.

The result need not be a real word. Both spellings of a word must give the same form, and two words must not.
"""

import re
from functools import lru_cache

_PAIRS = """
    programme=program programmes=programs grey=gray greys=grays judgement=judgment judgements=judgments
    acknowledgement=acknowledgment ageing=aging ageism=agism artefact=artifact artefacts=artifacts sceptic=skeptic
    sceptical=skeptical scepticism=skepticism practise=practice practised=practiced practising=practicing
    defence=defense offence=offense licence=license pretence=pretense fulfil=fulfill fulfilment=fulfillment
    enrol=enroll enrolment=enrollment skilful=skillful wilful=willful instalment=installment mould=mold moult=molt
    smoulder=smolder plough=plow tyre=tire cosy=cozy learnt=learned manoeuvre=maneuver manoeuvres=maneuvers
    aluminium=aluminum sulphur=sulfur draught=draft
"""
_AMERICAN_BY_BRITISH = dict(pair.split("=") for pair in _PAIRS.split())
# Each rule: letters that the word must contain (a quick check), pattern, replacement.
_RULES = tuple(
    (required_letters, re.compile(pattern), replacement)
    for required_letters, pattern, replacement in (
        (
            "our",
            r"(behavi|col|fav|flav|hon|hum|lab|neighb|rum|tum|od|vap|vig|endeav|harb|arm|savi|splend|cand|rig|ferv"
            r"|demean|parl|clam|glam|ranc|ard)our",
            r"\1or",
        ),
        ("ae", r"(an|h|p|gyn|f|palae|arch|leuk|encyclop|orthop|c|mediev|isch|gluc|glyc|tox|ur)ae(?=[a-z])", r"\1e"),
        ("ae", r"^ae(?=tio|on|stiv)|ae(?=sth)", "e"),
        ("oe", r"^oe(?=soph|str|dem|dip|nolog)", "e"),
        ("oe", r"(f|am|di?arrh|dyspn|apn|hom|pharmacop|c)oe(?=t|b|a|op|ia|li)", r"\1e"),
        ("is", r"(?<=...)is(?=(?:e|es|ed|ing|er|ers|able|ation|ations|ational)$)", "iz"),
        ("ys", r"ys(?=(?:e|es|ed|ing|er|ers)$)", "yz"),
        ("re", r"(cent|theat|met|lit|fib|lust|spect|calib|somb|meag)re(s?)$", r"\1er\2"),
        ("ll", r"(?<=...)ll(ed|ing|er|ers)$", r"l\1"),
        ("logue", r"(?<=..)logue(s?)$", r"log\1"),
    )
)


@lru_cache(200_000)
def normalize_spelling(word: str) -> str:
    """Return the common form of all spellings of a folded word."""
    if word in _AMERICAN_BY_BRITISH:
        return _AMERICAN_BY_BRITISH[word]
    for required_letters, pattern, replacement in _RULES:
        if required_letters in word:
            word = pattern.sub(replacement, word)
    return word
