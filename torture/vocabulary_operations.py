"""Random writes to vocabularies: their metadata and schemas, and imports of files by the command."""

import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

from tests.support.fork_server import ForkedProcess
from tests.support.polling import DEADLINE_SECONDS
from tests.support.server import build_environment
from torture.expected_state import ExpectedState, Json, WriteRequest, build_write, format_schema_fact, new_name

_VOCABULARIES = "/api/v1/vocabularies"
_TERMS_PER_FILE = 50
# More vocabularies than this are not created: each makes every check slower.
_MAX_VOCABULARIES = 3
_SCHEMA = """
id: https://example.org/{name}
name: {name}
prefixes:
  linkml: https://w3id.org/linkml/
  skos: http://www.w3.org/2004/02/skos/core#
imports: [linkml:types]
classes:
  Concept:
    class_uri: skos:Concept
    slots: [id, label]
slots:
  id: {{identifier: true}}
  label: {{slot_uri: skos:prefLabel}}
"""


@dataclass
class KnownVocabulary:
    """Vocabulary as a client knows it."""

    slug: str
    version: int = 1


@dataclass
class VocabularyOperations:
    """Vocabularies of one write client without a pending request."""

    rng: random.Random
    vocabularies: list[KnownVocabulary] = field(default_factory=list)

    def list_possible(self) -> list[Callable[[], WriteRequest]]:
        """Return builders of the writes that are possible now."""
        operations: list[Callable[[], WriteRequest]] = []
        if self.vocabularies:
            operations += [self._rename, self._apply_schema]
        if len(self.vocabularies) < _MAX_VOCABULARIES:
            operations += [self._create]
        return operations

    def _create(self) -> WriteRequest:
        vocabulary, title = KnownVocabulary(_new_slug()), new_name()
        body = {"slug": vocabulary.slug, "title": title, "schema": "skos"}
        facts = [f"vocabulary {vocabulary.slug} exists", f"vocabulary {vocabulary.slug} is called {title}"]
        return replace(
            build_write("POST", _VOCABULARIES, [body], facts), on_success=lambda _: self.vocabularies.append(vocabulary)
        )

    def _rename(self) -> WriteRequest:
        vocabulary, title = self._pop_random(), new_name()
        path, fact = f"{_VOCABULARIES}/{vocabulary.slug}", f"vocabulary {vocabulary.slug} is called {title}"
        return self._expect_version(vocabulary, build_write("PATCH", path, [{"title": title}], [fact]))

    def _apply_schema(self) -> WriteRequest:
        vocabulary, name = self._pop_random(), new_name()
        request = build_write(
            "PUT", f"{_VOCABULARIES}/{vocabulary.slug}/schema", [], [format_schema_fact(vocabulary.slug, name)]
        )
        request.headers["Content-Type"] = "application/yaml"
        return self._expect_version(vocabulary, replace(request, body=_SCHEMA.format(name=name).encode()))

    def _expect_version(self, vocabulary: KnownVocabulary, request: WriteRequest) -> WriteRequest:
        request.headers["If-Match"] = f'"{vocabulary.version}"'

        def on_success(results: list[Json]) -> None:
            vocabulary.version = results[0]["version"]
            self.vocabularies.append(vocabulary)

        return replace(request, on_success=on_success)

    def _pop_random(self) -> KnownVocabulary:
        return self.vocabularies.pop(self.rng.randrange(len(self.vocabularies)))


@dataclass
class ImportClient:
    """Import files into vocabularies by the command, until it is killed."""

    url: str
    index_path: Path
    folder: Path
    _slugs: list[str] = field(default_factory=list)

    def write(self, expected_state: ExpectedState, stop: Event, rng: random.Random) -> None:
        """Import one file after another until stopped; kill the last import."""
        while not stop.is_set():
            is_new = len(self._slugs) < _MAX_VOCABULARIES
            slug = _new_slug() if is_new else rng.choice(self._slugs)
            marker = new_name()
            file = self.folder / f"{marker}.ttl"
            file.write_text(_build_thesaurus(slug, marker))
            arguments = ["import", str(file), "--vocabulary", slug, "--mode", "add", "--database", self.url]
            process = ForkedProcess(arguments, {**build_environment(), "LEXARIUM_INDEX": str(self.index_path)})
            while process.poll() is None and not stop.wait(0.01):
                pass
            process.send_signal(signal.SIGKILL)
            _, errors = process.communicate(DEADLINE_SECONDS)
            facts = tuple(f"{marker} {number} is imported" for number in range(_TERMS_PER_FILE))
            request = WriteRequest("import", slug, {}, b"", facts, is_repeatable=False)
            expected_state.record_import(request, process.returncode, errors)
            if is_new and process.returncode == 0:
                self._slugs.append(slug)
            file.unlink()


def _new_slug() -> str:
    return f"v{new_name()[:12]}"


def _build_thesaurus(slug: str, marker: str) -> str:
    scheme = f"https://example.org/{slug}"
    concepts = (
        f"<{scheme}/{marker}-{number}> a skos:Concept ; skos:inScheme <{scheme}> ;"
        f' skos:prefLabel "{marker} {number}"@en ; skos:note "{marker}" .\n'
        for number in range(_TERMS_PER_FILE)
    )
    header = f"@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n<{scheme}> a skos:ConceptScheme .\n"
    return header + "".join(concepts)
