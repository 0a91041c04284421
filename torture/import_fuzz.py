"""Import corrupted files of every format: no crash, no hang, no partial import, bounded memory.

Run it from the repository's root as `python -m torture.import_fuzz --rounds N`. It exits with 1 at the first
failure, and keeps that file.
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

from lexarium.domain.errors import LexariumError
from lexarium.domain.schema.collections import MAIN_COLLECTIONS, Collection
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.registry import FORMATS, Format
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.imports import import_files
from lexarium.services.transfer.sample import load_sample
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.maintenance.upgrade import open_database
from lexarium.store.position import Position
from torture.mutations import mutate

# Limit for the import of a small file.
MAX_SECONDS = 20
# Limit for the growth of the process.
MAX_EXTRA_MIB = 1_024
ACCEPTED, REFUSED = "taken", "refused"
# Share of files that are compressed, before or after they are corrupted.
_COMPRESSED_SHARE = 0.1
_COMPRESSORS: tuple[Callable[[bytes], bytes], ...] = (gzip.compress, bz2.compress)
_CHECK_INTERVAL = 50
# OWL is only read, so a sample cannot be exported.
OWL_SAMPLE = b"""<?xml version="1.0"?>
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


class FuzzFailure(Exception):
    """Import that crashed, hung, was partial or used too much memory."""


@dataclass
class ImportFuzzer:
    """Catalogue with a valid file in every format."""

    folder: Path
    originals: dict[str, bytes]
    pristine: Path
    counts: Counter[str] = field(default_factory=Counter)
    max_memory: int = field(default_factory=lambda: MAX_EXTRA_MIB + _get_peak_mib())

    @property
    def database_path(self) -> Path:
        """Database that files are imported into."""
        return self.folder / "catalogue.db"

    def reset_database(self) -> None:
        """Restore the initial catalogue."""
        for file in self.folder.glob("catalogue.db*"):
            if file.is_file():
                file.unlink()
        shutil.copyfile(self.pristine, self.database_path)

    def import_one(self, format: Format, rng: random.Random) -> None:
        """Import one corrupted file; raise `FuzzFailure`."""
        file = self._write_corrupted(format, rng)
        format_hint, collection = rng.choice([None, format]), rng.choice([None, MAIN_COLLECTIONS["concept"]])
        database = Database(f"sqlite:///{self.database_path}")
        try:
            outcome = _try_import(database, file, format_hint, collection)
            self.counts[f"{format.name} {outcome}"] += 1
            if sum(self.counts.values()) % _CHECK_INTERVAL == 0 and (problems := check_database(database).problems):
                raise FuzzFailure(f"the check of the catalogue failed: {problems[0]}")
        finally:
            database.close()
        if _get_peak_mib() > self.max_memory:
            raise FuzzFailure(f"the process used {_get_peak_mib()} MiB")
        if outcome == ACCEPTED:
            self.reset_database()

    def _write_corrupted(self, format: Format, rng: random.Random) -> Path:
        original = self.originals[format.name]
        data = mutate(original, rng)
        if rng.random() < _COMPRESSED_SHARE:
            compress = rng.choice(_COMPRESSORS)
            data = compress(data) if rng.random() < 0.5 else mutate(compress(original), rng)
        file = self.folder / f"spoilt{rng.choice(format.extensions)}"
        file.write_bytes(data)
        return file


def _try_import(database: Database, file: Path, format: Format | None, collection: Collection | None) -> str:
    """Import a file and return the outcome; raise `FuzzFailure`."""
    before = _read_position(database)
    try:
        with _time_limit():
            import_files(database, [file], format=format, collection=collection)
    except LexariumError as error:
        if not str(error).strip():
            raise FuzzFailure("it was rejected without a message") from error
        if _read_position(database) != before:
            raise FuzzFailure("it was rejected, but the catalogue changed") from error
        return REFUSED
    except FuzzFailure:
        raise
    except Exception as error:
        raise FuzzFailure(f"{type(error).__name__}: {error}") from error
    return ACCEPTED


@contextmanager
def create_fuzzer(limit: int = 12) -> Iterator[ImportFuzzer]:
    """Create a catalogue of some sample records, with a file in every format."""
    with TemporaryDirectory(prefix="lexarium-torture-") as name:
        folder = Path(name)
        sample_database = open_database(f"sqlite:///{folder}/whole.db")
        load_sample(sample_database)
        lines = _export_bytes(sample_database, "jsonl").splitlines(keepends=True)
        sample_database.close()
        subset_file = folder / "few.jsonl"
        chosen_lines = random.Random(1).sample(lines[1:], min(limit * len(MAIN_COLLECTIONS), len(lines) - 1))
        subset_file.write_bytes(b"".join([lines[0], *chosen_lines]))
        pristine = folder / "pristine.db"
        database = open_database(f"sqlite:///{pristine}")
        import_files(database, [subset_file])
        originals = {
            name: _export_bytes(database, name) if file_format.can_write else OWL_SAMPLE
            for name, file_format in FORMATS.items()
        }
        database.close()
        fuzzer = ImportFuzzer(folder, originals, pristine)
        fuzzer.reset_database()
        yield fuzzer


def _export_bytes(database: Database, format: str) -> bytes:
    return b"".join(export_records(database, Vocabulary(), FORMATS[format], list(MAIN_COLLECTIONS.values())))


def _read_position(database: Database) -> Position:
    with database.read() as snapshot:
        return read_position(snapshot)


def _get_peak_mib() -> int:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


@contextmanager
def _time_limit() -> Iterator[None]:
    def raise_timeout(number: int, frame: FrameType | None) -> None:
        raise FuzzFailure(f"it took longer than {MAX_SECONDS} s")

    before = signal.signal(signal.SIGALRM, raise_timeout)
    signal.alarm(MAX_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = ArgumentParser(prog="python -m torture.import_fuzz", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2_000, help="files per format (2,000)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="maximum duration (unlimited)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    rng = random.Random(options.seed)
    deadline = time.monotonic() + options.seconds
    with create_fuzzer() as fuzzer:
        for _ in range(options.rounds):
            for name in fuzzer.originals:
                try:
                    fuzzer.import_one(FORMATS[name], rng)
                except FuzzFailure as failure:
                    kept_file = Path(f"harmful-{options.seed}{FORMATS[name].extensions[0]}")
                    shutil.copyfile(max(fuzzer.folder.glob("spoilt*"), key=os.path.getmtime), kept_file)
                    print(f"{name}: {failure}. The file was saved as {kept_file}.")
                    return 1
            if time.monotonic() > deadline:
                break
        for label, count in sorted(fuzzer.counts.items()):
            print(f"{label}: {count:,}")
        print(f"{sum(fuzzer.counts.values()):,} files, no failures; peak memory {_get_peak_mib()} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
