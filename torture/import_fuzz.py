"""Import corrupted files of every format and vocabulary: no crash, no hang, no partial import, bounded memory.

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
from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.domain.schema.collections import MAIN_COLLECTIONS
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary
from lexarium.formats.registry import FORMATS, Format
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_request import ImportMode, ImportRequest
from lexarium.services.transfer.sample import load_sample, sample_files
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
# A foreign ontology.
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
TRANSLATION_SAMPLE = b"""subject_id\tpredicate_id\tsource_value\ttranslation_language\ttranslation_value\ttranslator
PET:1\trdfs:label\tdog\tde\tHund\tAda
PET:1\tIAO:0000115\tA pet that barks.\tde\t"Ein Haustier, das ""bellt""."\t
"""
# Files that are not exported for it.
SAMPLES = {"owl": OWL_SAMPLE, "translation": TRANSLATION_SAMPLE}
# An ontology; the sample catalogue has a thesaurus.
ONTOLOGY_SAMPLE = b"""format-version: 1.4
ontology: pets
subsetdef: slim "Common pets"
synonymtypedef: abbreviation "short form" EXACT

[Term]
id: PET:1
name: dog
alt_id: PET:9
def: "A pet that barks." [PMID:1 "an article"] {date="2024"}
comment: not a wolf
subset: slim
synonym: "hound" EXACT abbreviation [PMID:2] {lang="en"}
xref: MESH:D004285 "Dogs"
property_value: skos:exactMatch wikidata:Q144
is_a: PET:2 {source="me"}
intersection_of: PET:2
intersection_of: part_of PET:3
relationship: part_of PET:3

[Term]
id: PET:2
name: pet

[Term]
id: PET:3
name: pack
is_obsolete: true
replaced_by: PET:2

[Typedef]
id: part_of
name: part of
is_transitive: true
"""
ONTOLOGY, THESAURUS = "pets", "settings"
# Vocabularies whose files are corrupted, by format.
VOCABULARY_FORMATS = {
    **dict.fromkeys(("obo", "owl", "sssom", "translation", "csv", "tsv", "jsonl", "linkml"), ONTOLOGY),
    **dict.fromkeys(("skos", "rdfxml", "ntriples", "jsonld"), THESAURUS),
}
_MODES = [*ImportMode, ImportMode.UPDATE]


class FuzzFailure(Exception):
    """Import that crashed, hung, was partial or used too much memory."""


@dataclass
class ImportFuzzer:
    """Catalogue with a valid file in every format."""

    folder: Path
    originals: dict[str, bytes]
    # Files of other vocabularies than the main one.
    vocabulary_originals: dict[str, bytes]
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
        file = self._write_corrupted(self.originals[format.name], format, rng)
        format_hint, collection = rng.choice([None, format]), rng.choice(["", "concept"])
        self._run(format.name, lambda database: _try_import(database, file, format_hint, collection))

    def import_vocabulary_file(self, format: Format, rng: random.Random) -> None:
        """Import one corrupted file of a vocabulary, into it, into a new one, or where the file belongs."""
        file = self._write_corrupted(self.vocabulary_originals[format.name], format, rng)
        slug = rng.choice([VOCABULARY_FORMATS[format.name], "fresh", ""])
        request = ImportRequest([file], slug, rng.choice([None, format]), mode=rng.choice(_MODES))
        self._run(f"{format.name} of a vocabulary", lambda database: _try_vocabulary_import(database, request, format))

    def _run(self, label: str, task: Callable[[Database], str]) -> None:
        database = Database(f"sqlite:///{self.database_path}")
        try:
            database.run_read(database.follow_vocabularies)
            outcome = task(database)
            self.counts[f"{label} {outcome}"] += 1
            if sum(self.counts.values()) % _CHECK_INTERVAL == 0 and (problems := check_database(database).problems):
                raise FuzzFailure(f"the check of the catalogue failed: {problems[0]}")
        finally:
            database.close()
        if _get_peak_mib() > self.max_memory:
            raise FuzzFailure(f"the process used {_get_peak_mib()} MiB")
        if outcome == ACCEPTED:
            self.reset_database()

    def _write_corrupted(self, original: bytes, format: Format, rng: random.Random) -> Path:
        data = mutate(original, rng)
        if rng.random() < _COMPRESSED_SHARE:
            compress = rng.choice(_COMPRESSORS)
            data = compress(data) if rng.random() < 0.5 else mutate(compress(original), rng)
        file = self.folder / f"spoilt{rng.choice(format.extensions)}"
        file.write_bytes(data)
        return file


def _try_import(database: Database, file: Path, format: Format | None, collection: str) -> str:
    """Import a file into the main vocabulary and return the outcome; raise `FuzzFailure`."""
    request = ImportRequest([file], MAIN_VOCABULARY, format, collection)
    return _attempt(database, lambda: run_import(database, request))


def _try_vocabulary_import(database: Database, request: ImportRequest, format: Format) -> str:
    """Import a file into a vocabulary, export that, and return the outcome; raise `FuzzFailure`."""

    def run() -> None:
        slug = run_import(database, request).vocabulary
        if format.can_write and slug != MAIN_VOCABULARY:
            _export_bytes(database, format.name, VOCABULARIES[slug])

    return _attempt(database, run)


def _attempt(database: Database, task: Callable[[], object]) -> str:
    """Run an import and return the outcome; raise `FuzzFailure`."""
    before, known = _read_position(database), dict(VOCABULARIES)
    try:
        with _time_limit():
            task()
    except LexariumError as error:
        if not str(error).strip():
            raise FuzzFailure("it was rejected without a message") from error
        if "\x1f" in str(error):
            raise FuzzFailure("the message has an id as the store has it") from error
        if _read_position(database) != before or dict(VOCABULARIES) != known:
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
        originals = {name: SAMPLES[name] if name in SAMPLES else _export_bytes(database, name) for name in FORMATS}
        ontology_file = folder / f"{ONTOLOGY}.obo"
        ontology_file.write_bytes(ONTOLOGY_SAMPLE)
        with sample_files(f"{THESAURUS}.ttl") as [thesaurus_file]:
            for file in (ontology_file, thesaurus_file):
                run_import(database, ImportRequest([file]))
        vocabulary_originals = {
            name: SAMPLES[name] if name == "translation" else _export_bytes(database, name, VOCABULARIES[slug])
            for name, slug in VOCABULARY_FORMATS.items()
        }
        database.close()
        fuzzer = ImportFuzzer(folder, originals, vocabulary_originals, pristine)
        fuzzer.reset_database()
        yield fuzzer


def _export_bytes(database: Database, format: str, vocabulary: Vocabulary | None = None) -> bytes:
    collections = list(MAIN_COLLECTIONS.values()) if vocabulary is None else vocabulary.collections
    return b"".join(export_records(database, vocabulary or Vocabulary(), FORMATS[format], collections))


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
        tasks = [(name, fuzzer.import_one) for name in fuzzer.originals]
        tasks += [(name, fuzzer.import_vocabulary_file) for name in fuzzer.vocabulary_originals]
        for _ in range(options.rounds):
            for name, import_one in tasks:
                try:
                    import_one(FORMATS[name], rng)
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
