"""Importing files that are spoilt, of every format: no crash, no hang, nothing in part, memory bounded.

Run it from the repository's root as `python -m torture.files --rounds N`. It ends with 1 at the first file that does
harm, and keeps that file.
"""

import bz2
import gzip
import os
import random
import resource
import shutil
import signal
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from lexarium.domain.about import About
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.errors import LexariumError
from lexarium.exchange.formats import FORMATS, Format
from lexarium.service.checking import check
from lexarium.service.exporting import export
from lexarium.service.importing import import_files
from lexarium.service.sample import load_sample
from lexarium.store.backend import Position, read_position
from lexarium.store.database import Database
from lexarium.store.migrate import open_database
from torture.mutations import mutated

SECONDS = 20
"""How long an import of a small file may take."""
MEBIBYTES = 1_024
"""How much more memory the process may come to have than it had."""
TAKEN, REFUSED = "taken", "refused"
_PACKED = 0.1
"""The share of files that are compressed after they are spoilt, or spoilt after they are compressed."""
_PACKS: tuple[Callable[[bytes], bytes], ...] = (gzip.compress, bz2.compress)
_CHECKED_EVERY = 50
OWL = b"""<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [<!ENTITY obo "http://purl.obolibrary.org/obo/">]>
<rdf:RDF xmlns:owl="http://www.w3.org/2002/07/owl#" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xmlns:obo="http://purl.obolibrary.org/obo/"
    xmlns:oboInOwl="http://www.geneontology.org/formats/oboInOwl#">
  <owl:Ontology rdf:about="http://purl.obolibrary.org/obo/pets.owl"/>
  <owl:Class rdf:about="&obo;PET_0000001">
    <rdfs:label xml:lang="en">dog</rdfs:label>
    <rdfs:subClassOf rdf:resource="&obo;PET_0000002"/>
    <rdfs:subClassOf><owl:Restriction>
      <owl:onProperty rdf:resource="&obo;BFO_0000050"/><owl:someValuesFrom rdf:resource="&obo;PET_0000003"/>
    </owl:Restriction></rdfs:subClassOf>
    <obo:IAO_0000115>A pet that barks.</obo:IAO_0000115>
    <oboInOwl:hasExactSynonym>hound</oboInOwl:hasExactSynonym>
    <oboInOwl:hasDbXref>MESH:D004285</oboInOwl:hasDbXref>
  </owl:Class>
  <owl:Class rdf:about="&obo;PET_0000002"><rdfs:label>pet</rdfs:label></owl:Class>
  <owl:Class rdf:about="&obo;PET_0000003">
    <rdfs:label>pack</rdfs:label><owl:deprecated>true</owl:deprecated>
    <obo:IAO_0100001 rdf:resource="&obo;PET_0000002"/>
  </owl:Class>
</rdf:RDF>
"""
"""The one format that is only read."""


class Harm(Exception):
    """What must not come of any file."""


@dataclass
class Files:
    """A catalogue, and a file of it in every format."""

    folder: Path
    originals: dict[str, bytes]
    pristine: Path
    counts: Counter[str] = field(default_factory=Counter)
    memory: int = field(default_factory=lambda: MEBIBYTES + _memory())
    """How much the process may come to have."""

    @property
    def place(self) -> Path:
        """The catalogue that files are imported into."""
        return self.folder / "catalogue.db"

    def begin_anew(self) -> None:
        """Have the catalogue as it was at first."""
        for each in self.folder.glob("catalogue.db*"):
            if each.is_file():
                each.unlink()
        shutil.copyfile(self.pristine, self.place)

    def try_one(self, format: Format, chance: random.Random) -> None:
        """Import one spoilt file. Raises `Harm`."""
        file = self._spoilt(format, chance)
        told, collection = chance.choice([None, format]), chance.choice([None, COLLECTIONS["concept"]])
        database = Database(f"sqlite:///{self.place}")
        try:
            outcome = _imported(database, file, told, collection)
            self.counts[f"{format.name} {outcome}"] += 1
            if sum(self.counts.values()) % _CHECKED_EVERY == 0 and (problems := check(database).problems):
                raise Harm(f"the catalogue does not agree with itself: {problems[0]}")
        finally:
            database.close()
        if _memory() > self.memory:
            raise Harm(f"the process has {_memory()} MiB")
        if outcome == TAKEN:
            self.begin_anew()

    def _spoilt(self, format: Format, chance: random.Random) -> Path:
        original = self.originals[format.name]
        data = mutated(original, chance)
        if chance.random() < _PACKED:
            pack = chance.choice(_PACKS)
            data = pack(data) if chance.random() < 0.5 else mutated(pack(original), chance)
        file = self.folder / f"spoilt{chance.choice(format.extensions)}"
        file.write_bytes(data)
        return file


def _imported(database: Database, file: Path, format: Format | None, collection: Collection | None) -> str:
    """What became of a file. Raises `Harm`."""
    before = _position(database)
    try:
        with _in_time():
            import_files(database, [file], format=format, collection=collection)
    except LexariumError as error:
        if not str(error).strip():
            raise Harm("it was refused without a word") from error
        if _position(database) != before:
            raise Harm("it was refused, and something of it was kept") from error
        return REFUSED
    except Harm:
        raise
    except Exception as error:
        raise Harm(f"{type(error).__name__}: {error}") from error
    return TAKEN


@contextmanager
def made(limit: int = 12) -> Iterator[Files]:
    """A catalogue of some records of the sample, with a file of it in every format."""
    with TemporaryDirectory(prefix="lexarium-torture-") as name:
        folder = Path(name)
        whole = open_database(f"sqlite:///{folder}/whole.db")
        load_sample(whole)
        lines = _exported(whole, "jsonl").splitlines(keepends=True)
        whole.close()
        few = folder / "few.jsonl"
        chosen = random.Random(1).sample(lines[1:], min(limit * len(COLLECTIONS), len(lines) - 1))
        few.write_bytes(b"".join([lines[0], *chosen]))
        pristine = folder / "pristine.db"
        database = open_database(f"sqlite:///{pristine}")
        import_files(database, [few])
        originals = {name: _exported(database, name) if each.writes else OWL for name, each in FORMATS.items()}
        database.close()
        files = Files(folder, originals, pristine)
        files.begin_anew()
        yield files


def _exported(database: Database, format: str) -> bytes:
    return b"".join(export(database, About(), FORMATS[format], list(COLLECTIONS.values())))


def _position(database: Database) -> Position:
    with database.read() as snapshot:
        return read_position(snapshot)


def _memory() -> int:
    """The most that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


@contextmanager
def _in_time() -> Iterator[None]:
    def late(number: int, frame: FrameType | None) -> None:
        raise Harm(f"it took longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def main() -> int:
    """Run it as the command line says, and return its exit code."""
    parser = ArgumentParser(prog="python -m torture.files", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2_000, help="of every format (2,000)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which it ends at the latest")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    until = time.monotonic() + options.seconds
    with made() as files:
        for _ in range(options.rounds):
            for name in files.originals:
                try:
                    files.try_one(FORMATS[name], chance)
                except Harm as harm:
                    kept = Path(f"harmful-{options.seed}{FORMATS[name].extensions[0]}")
                    shutil.copyfile(max(files.folder.glob("spoilt*"), key=os.path.getmtime), kept)
                    print(f"{name}: {harm}. The file is kept as {kept}.")
                    return 1
            if time.monotonic() > until:
                break
        for told, count in sorted(files.counts.items()):
            print(f"{told}: {count:,}")
        print(f"{sum(files.counts.values()):,} files, none did harm; at most {_memory()} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
