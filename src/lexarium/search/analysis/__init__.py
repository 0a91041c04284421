"""Text analysis: tokenizing, folding, spelling variants."""
