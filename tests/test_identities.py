"""Records that files call by names of their own: each is one record of ours, the same at every import."""

import json
from pathlib import Path
from typing import Any

import pytest

from lexarium.domain.changes import State
from lexarium.domain.errors import ImportRefused
from lexarium.domain.identifiers import has_prefix
from lexarium.domain.relations import Edge
from lexarium.exchange.incoming import Incoming
from lexarium.service.checking import check
from lexarium.service.importing import import_files
from lexarium.store import edges
from lexarium.store.database import Database
from tests.test_editions import Curator, curator, take, whole
from tests.test_import import imported, listed

__all__ = ["curator"]


def foreign(name: str, line: int = 1, **more: Any) -> Incoming:
    fields = {"name": name.lower(), **more.pop("fields", {})}
    return Incoming(line, "disorder", foreign=name, fields=fields, **more)


def is_a(child: str, parent: str) -> Edge:
    return Edge(child, "ISA", parent)


def ids(database: Database) -> dict[str, str]:
    return {record["name"]: record["id"] for record in listed(database, "disorder")}


def test_a_foreign_name_is_kept_as_an_exact_match_and_finds_its_record_again(database: Database) -> None:
    first = take(database, foreign("DOID:1"), foreign("http://example.org/2#x", 2))
    assert dict(first.created) == {"disorder": 2}
    found = ids(database)
    assert all(has_prefix(identifier, ("dso",)) for identifier in found.values())
    assert whole(database, found["doid:1"]).edges == {Edge(found["doid:1"], "exactMatch", "DOID:1")}
    again = take(database, foreign("DOID:1"), foreign("http://example.org/2#x", 2))
    assert not again.changed
    assert again.warnings.count == 0
    report = take(database, foreign("DOID:1", fields={"name": "another"}))
    assert dict(report.updated) == {"disorder": 1}
    assert ids(database)["another"] == found["doid:1"]
    assert check(database).problems == []


def test_relations_between_foreign_names_become_relations_between_records(database: Database) -> None:
    every = [("ISA", "source")]
    child = foreign("X:child", edges=[is_a("X:child", "X:parent")], told=every)
    assert take(database, child, foreign("X:parent", 2)).relations_added == 3
    found = ids(database)
    assert is_a(found["x:child"], found["x:parent"]) in whole(database, found["x:child"]).edges
    assert not take(database, child).changed, "a parent that is not in the file is found by its name"
    report = take(database, foreign("X:child", edges=[], told=every))
    assert (report.relations_added, report.relations_removed) == (0, 1)


def test_a_relation_to_what_nobody_knows_is_left_out_with_its_line(database: Database) -> None:
    report = take(database, foreign("X:1", 7, edges=[is_a("X:1", "X:unknown")]))
    (note,) = report.warnings.kept
    assert note.field == "somewhere, line 7"
    assert "X:unknown" in note.detail
    assert report.relations_added == 1, "only what the record itself is called"


def test_an_id_of_ours_in_a_relation_may_wait_for_its_record(database: Database) -> None:
    take(database, foreign("X:1", edges=[is_a("X:1", "dso_later")]))
    take(database, Incoming(1, "disorder", fields={"id": "dso_later", "name": "later"}))
    source = ids(database)["x:1"]
    assert is_a(source, "dso_later") in whole(database, source).edges


def test_a_record_that_a_curator_matched_by_hand_is_the_one_that_is_meant(database: Database, curator: Curator) -> None:
    take(database, Incoming(1, "disorder", fields={"id": "dso_1", "name": "ours"}))
    curator.do(lambda desk: desk.relate(desk.any("dso_1"), "exactMatch", "X:1"))
    take(database, foreign("X:1", fields={"definition": "Theirs."}))
    assert list(ids(database).values()) == ["dso_1"]
    assert whole(database, "dso_1").fields["definition"] == "Theirs."


def test_what_replaces_a_retired_record_may_be_told_by_a_foreign_name(database: Database) -> None:
    old = foreign("X:old", state=State.RETIRED, replaced_by="X:new")
    lost = foreign("X:lost", 3, state=State.RETIRED, replaced_by="X:nowhere")
    report = take(database, old, foreign("X:new", 2), lost)
    with database.read() as snapshot:
        found = edges.matched(snapshot, ["X:old", "X:lost"])
    assert whole(database, found["X:old"][0].id).replaced_by == ids(database)["x:new"]
    assert whole(database, found["X:lost"][0].id).replaced_by is None
    assert "X:nowhere" in report.warnings.kept[0].detail
    assert not take(database, old, foreign("X:new", 2), lost).changed


def test_two_foreign_records_that_became_one_here_stay_one(database: Database, curator: Curator) -> None:
    both = [foreign("X:1"), foreign("X:2", 2)]
    take(database, *both)
    found = ids(database)
    curator.do(lambda desk: desk.merge(desk.any(found["x:2"]), found["x:1"]))
    report = take(database, *both)
    assert not report.changed
    assert report.refused == 1
    assert "X:2" in report.warnings.kept[0].detail
    newer = take(database, *(foreign(name, fields={"definition": name}) for name in ("X:2", "X:1")))
    assert dict(newer.updated) == {"disorder": 1}
    assert whole(database, found["x:1"]).fields["definition"] == "X:1"
    again = take(database, *(foreign(name, fields={"definition": name}) for name in ("X:2", "X:1")))
    assert not again.changed
    assert list(ids(database)) == ["x:1"]


def test_a_record_with_only_a_name_is_the_one_that_has_that_name(database: Database) -> None:
    rows = [Incoming(at, "concept", fields={"name": name}) for at, name in enumerate(("Alpha", "Beta"), 1)]
    assert dict(take(database, *rows).created) == {"concept": 2}
    assert not take(database, *rows).changed
    report = take(database, Incoming(1, "concept", fields={"name": "alpha", "definition_text": "First."}))
    assert dict(report.updated) == {"concept": 1}
    assert len(listed(database)) == 2


@pytest.mark.parametrize("name", ["no prefix", "javascript:alert(1)", "X:a b"])
def test_a_name_that_cannot_be_told_again_is_refused(database: Database, name: str) -> None:
    with pytest.raises(ImportRefused) as refused:
        take(database, foreign(name))
    assert "CURIE" in refused.value.problems[0].detail


def test_a_mapping_that_no_file_could_hold_is_left_out_with_a_warning(database: Database) -> None:
    report = take(database, foreign("X:1", edges=[Edge("X:1", "closeMatch", "some words")]))
    assert "some words" in report.warnings.kept[0].detail
    assert len(whole(database, ids(database)["x:1"]).edges) == 1


def test_text_that_cannot_be_stored_is_refused_whichever_codec_read_it(database: Database) -> None:
    with pytest.raises(ImportRefused) as refused:
        take(database, foreign("X:1", fields={"definition": "a\0b"}), foreign("X:2", sources=("\0",)))
    assert ["U+0000" in problem.detail for problem in refused.value.problems] == [True, True]


def test_a_match_of_another_collection_is_told_of_and_not_taken(database: Database, curator: Curator) -> None:
    take(database, Incoming(1, "concept", fields={"id": "trm_1", "name": "ours"}))
    curator.do(lambda desk: desk.relate(desk.any("trm_1"), "exactMatch", "X:1"))
    report = take(database, foreign("X:1"), foreign("X:2", 2))
    assert dict(report.created) == {"disorder": 2}
    assert "trm_1, which is a concept" in report.warnings.kept[0].detail
    again = take(database, foreign("X:1"), foreign("X:2", 2))
    assert not again.changed, "it is found among its own, though the other comes first"


def test_an_id_that_looks_like_a_foreign_name_waits_where_a_format_knows_only_ids(
    database: Database, tmp_path: Path
) -> None:
    parent = {"id": "X:2", "name": "", "relationship": "KINDOF", "direction": "parent"}
    imported(database, tmp_path, "concept.json", [{"id": "X:1", "name": "one", "relationships": [parent]}])
    lines = [{"collection": "concept", "record": {"id": "X:3", "name": "three"}, "relations": {"KINDOF": ["X:2"]}}]
    lines += [{**lines[0], "record": {"id": "X:4", "name": "four"}, "state": "retired", "replaced_by": "X:2"}]
    file = tmp_path / "some.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    import_files(database, [file])
    imported(database, tmp_path, "concept.json", [{"id": "X:2", "name": "two"}])
    for source in ("X:1", "X:3", "X:4"):
        assert whole(database, source).edges == {Edge(source, "KINDOF", "X:2")}
    assert whole(database, "X:4").replaced_by == "X:2"


def test_many_that_became_one_are_left_out_together(database: Database, curator: Curator) -> None:
    take(database, Incoming(1, "disorder", fields={"id": "dso_1", "name": "ours"}))
    curator.edit("dso_1", relations={"exactMatch": [f"X:{number}" for number in range(5)]})
    several = [foreign(f"X:{number}", number + 1) for number in range(5)]
    report = take(database, *several, foreign("X:other", 9, edges=[is_a("X:other", "X:4")]))
    assert report.refused == 4
    assert [note.field for note in report.warnings.kept] == [f"somewhere, line {line}" for line in range(2, 6)]
    assert is_a(ids(database)["x:other"], "dso_1") in whole(database, ids(database)["x:other"]).edges


def test_a_table_names_the_parents_of_its_rows_by_their_names_in_the_catalogue(
    database: Database, tmp_path: Path
) -> None:
    table = tmp_path / "concept.csv"
    table.write_text("name,parent\nanger,emotion\nemotion,\n")
    assert dict(import_files(database, [table]).created) == {"concept": 2}
    table.write_text("name,parent\nANGER,Emotion\n")
    again = import_files(database, [table])
    assert (again.relations_added, again.relations_removed, again.warnings.count) == (0, 0, 0)
    table.write_text("name,parent\nanger,nothing\n")
    lost = import_files(database, [table])
    assert (lost.relations_added, lost.relations_removed) == (0, 0), "it may be misspelt"
    assert "'anger' kind of 'nothing' is left out" in str(lost.warnings.kept)
    assert check(database).problems == []
