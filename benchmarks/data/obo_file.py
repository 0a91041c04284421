"""Generate an OBO file: terms with synonyms, definitions, parents and cross-references, some of them obsolete."""

from itertools import islice
from pathlib import Path
from random import Random

from benchmarks.data.generated import generate_names, generate_records

_HEADER = """\
format-version: 1.4
data-version: 2026-01-01
ontology: made
default-namespace: disorder
"""
_SCOPES = ("EXACT", "NARROW", "BROAD", "RELATED")


def write_obo_file(path: Path, count: int, seed: int = 1) -> None:
    """Write terms, the same ones for the same seed; the first is the root of the others."""
    rng = Random(seed)
    synonyms = iter(generate_names(count, seed + 1))
    with path.open("w", encoding="utf-8") as file:
        file.write(_HEADER)
        for number, record in enumerate(generate_records(count, seed), 1):
            lines = ["", "[Term]", f"id: MADE:{number:07}", f"name: {record['name']} {number}"]
            definition = str(record["definition_text"]).replace("\n", "\\n").replace('"', '\\"')
            lines.append(f'def: "{definition}" [MADE:{number}]')
            for synonym in islice(synonyms, rng.choice((0, 1, 1))):
                lines.append(f'synonym: "{synonym}" {rng.choice(_SCOPES)} []')
            lines.append(f"xref: OTHER:{rng.randrange(10**7)}")
            if number > 1 and rng.random() < 0.03:
                lines += ["is_obsolete: true", f"replaced_by: MADE:{rng.randrange(1, number):07}"]
            elif number > 1:
                parents = {rng.randrange(1, number) for _ in range(rng.choice((1, 1, 1, 2)))}
                lines += [f"is_a: MADE:{parent:07}" for parent in sorted(parents)]
            file.write("\n".join(lines) + "\n")
