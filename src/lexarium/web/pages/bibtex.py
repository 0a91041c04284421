"""Citations in BibTeX."""

import re

# Characters that no key may have.
_NO_KEY = re.compile(r"[^\w.:/-]")
_ESCAPES = str.maketrans("", "", "{}\\")


def format_bibtex(key: str, title: str, **fields: str) -> str:
    """Return an entry for something that was published online."""
    # In two braces, which keep its capital letters.
    values = {"title": f"{{{title.translate(_ESCAPES)}}}"}
    values |= {name: value.translate(_ESCAPES) for name, value in fields.items()}
    lines = [f"@misc{{{_NO_KEY.sub('_', key)}", *(f"  {name} = {{{value}}}" for name, value in values.items())]
    return ",\n".join(lines) + "\n}"
