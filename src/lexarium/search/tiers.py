"""The tiers in which search ranks: how a record matched what was asked, the best first."""

from enum import IntEnum


class Tier(IntEnum):
    """How a record matched. A lower one goes before a higher one, whatever the words weigh."""

    ID = 0
    """Its identifier, or a CURIE or IRI that it is mapped to."""
    NAME = 1
    """Its name, ignoring case."""
    FOLDED = 2
    """Its name, ignoring accents, punctuation, hyphens and spelling too."""
    ALIAS = 3
    """One of its aliases, likewise."""
    BEGINNING = 4
    """The beginning of its name."""
    NAME_WORDS = 5
    """All words, in its name."""
    ALIAS_WORDS = 6
    """All words, in its name and aliases."""
    TYPO = 7
    """Its name or an alias, but for a typing mistake. Looked for only where no name or alias has all words."""
    DEFINITION_WORDS = 8
    """All words, its definition included."""
    TYPO_WORDS = 9
    """All words in its name and aliases, but for a typing mistake in some. Looked for as typos are."""

    @property
    def kind(self) -> str:
        """What an answer calls it."""
        return self.name.lower()


EXACT = frozenset({Tier.ID, Tier.NAME, Tier.FOLDED, Tier.ALIAS})
"""Where what was asked is a whole identifier, name or alias of the record."""
