"""A made OBO file: terms with synonyms, definitions, parents and cross-references, some of them obsolete."""

from itertools import islice
from pathlib import Path
from random import Random

from benchmarks.made import made_names, made_records

_HEADER = """\
format-version: 1.4
data-version: 2026-01-01
ontology: made
default-namespace: disorder
"""
_SCOPES = ("EXACT", "NARROW", "BROAD", "RELATED")


def write_stanzas(path: Path, count: int, seed: int = 1) -> None:
    """Write so many terms, the same ones for the same seed; the first is the root of the others."""
    random = Random(seed)
    synonyms = iter(made_names(count, seed + 1))
    with path.open("w", encoding="utf-8") as file:
        file.write(_HEADER)
        for number, record in enumerate(made_records(count, seed), 1):
            lines = ["", "[Term]", f"id: MADE:{number:07}", f"name: {record['name']} {number}"]
            definition = str(record["definition_text"]).replace("\n", "\\n").replace('"', '\\"')
            lines.append(f'def: "{definition}" [MADE:{number}]')
            for synonym in islice(synonyms, random.choice((0, 1, 1))):
                lines.append(f'synonym: "{synonym}" {random.choice(_SCOPES)} []')
            lines.append(f"xref: OTHER:{random.randrange(10**7)}")
            if number > 1 and random.random() < 0.03:
                lines += ["is_obsolete: true", f"replaced_by: MADE:{random.randrange(1, number):07}"]
            elif number > 1:
                parents = {random.randrange(1, number) for _ in range(random.choice((1, 1, 1, 2)))}
                lines += [f"is_a: MADE:{parent:07}" for parent in sorted(parents)]
            file.write("\n".join(lines) + "\n")
