"""Exporting: any format, any state, to a file or over HTTP."""

import gzip
import json
from pathlib import Path

import pytest

from lexarium.domain.about import About
from lexarium.domain.accounts import Role
from lexarium.domain.collections import COLLECTIONS
from lexarium.exchange.formats import FORMATS
from lexarium.service.access import Caller, add_account
from lexarium.service.desk import Desk
from lexarium.service.exporting import export
from lexarium.service.importing import import_files
from lexarium.store.database import Database
from tests.server import run
from tests.test_commands import on_terminal
from tests.test_import import term

ABOUT = About("Ours", "CC0-1.0", "A <library>", "de", "https://example.org/terms/")
STREAMED = ("v-alpha", "jsonl")


@pytest.fixture
def grown(database: Database, tmp_path: Path) -> Database:
    """A catalogue that is read in several parts, with relations across them."""
    parents = [{"relationship": "KINDOF", "direction": "parent", "id": "trm_n0001", "name": ""}]
    records = [
        {**term(f"n{number:04}"), "type": "concept", "relationships": parents if number > 1 else []}
        for number in range(1, 2_500)
    ]
    path = tmp_path / "concept.json"
    path.write_text(json.dumps(records))
    import_files(database, [path])
    return database


def rewrite(database: Database) -> None:
    """Change what an export that has begun is still to tell: names, relations, states, and what there is."""
    caller = Caller(add_account(database, "Ada", Role.CURATOR), Role.CURATOR, "tok_test")
    concept = COLLECTIONS["concept"]
    with database.write() as transaction:
        desk = Desk(transaction, caller)
        desk.patch(desk.current(concept, "trm_n0001"), {"name": "another name"})
        desk.retire(desk.current(concept, "trm_n2400"))
        desk.merge(desk.current(concept, "trm_n2300"), "trm_n2301")
        desk.unrelate(desk.current(concept, "trm_n2200"), "KINDOF", "trm_n0001")
        desk.create(concept, {"name": "n2250", "relations": {"KINDOF": ["trm_n2201"]}})


@pytest.mark.parametrize("name", STREAMED)
def test_an_export_stays_of_one_state_while_others_write(grown: Database, name: str) -> None:
    wanted = FORMATS[name]
    before = b"".join(export(grown, ABOUT, wanted))
    pieces = export(grown, ABOUT, wanted)
    begun = next(pieces)
    rewrite(grown)
    assert begun + b"".join(pieces) == before
    assert b"".join(export(grown, ABOUT, wanted)) != before
    assert b"".join(export(grown, ABOUT, wanted, as_of=2_499)) == before


def test_only_the_collections_that_are_asked_for_are_exported(database: Database, sample_paths: list[Path]) -> None:
    import_files(database, sample_paths)
    wanted = [COLLECTIONS["task"], COLLECTIONS["contrast"]]
    shapes = json.loads(b"".join(export(database, ABOUT, FORMATS["v-alpha"], wanted)))
    assert {shape["type"] for shape in shapes} == {"task", "contrast"}
    lines = b"".join(export(database, ABOUT, FORMATS["jsonl"], wanted)).splitlines()
    assert {json.loads(line)["collection"] for line in lines[1:]} == {"task", "contrast"}
    assert len(lines) == len(shapes) + 1


@pytest.fixture
def at(tmp_path: Path, sample_paths: list[Path]) -> str:
    url = f"sqlite:///{tmp_path}/catalogue.db"
    assert run("import", *sample_paths, "--database", url).returncode == 0
    return url


def test_the_name_of_the_file_tells_its_format_and_whether_it_is_compressed(at: str, tmp_path: Path) -> None:
    plain = run("export", "--format", "jsonl", "--database", at).stdout
    path = tmp_path / "all.jsonl.gz"
    assert run("export", "-o", path, "--database", at).returncode == 0
    assert gzip.decompress(path.read_bytes()).decode() == plain
    path = tmp_path / "all.JSON"
    assert run("export", "-o", path, "--database", at).returncode == 0
    assert path.read_text() == run("export", "--database", at).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "owl"], "can only be imported"),
        (["-o", "all.owl"], "can only be imported"),
        (["-o", "all.pdf"], "does not tell a format"),
        (["-o", "all.pdf.gz"], "does not tell a format"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    at: str, tmp_path: Path, arguments: list[str], said: str
) -> None:
    arguments = [str(tmp_path / each) if each.startswith("all.") else each for each in arguments]
    before = set(tmp_path.iterdir())
    result = run("export", *arguments, "--database", at)
    assert (result.returncode, result.stdout) == (1, "")
    assert said in result.stderr
    assert "jsonl" in result.stderr
    assert set(tmp_path.iterdir()) == before


def test_a_long_export_to_a_file_shows_its_progress_on_a_terminal(at: str, tmp_path: Path) -> None:
    for name in ("all.json", "all.jsonl"):
        seen = on_terminal("export", "-o", tmp_path / name, "--database", at)
        assert "writing" in seen
        assert "100%" in seen
