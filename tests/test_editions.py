"""A newer edition of what was imported before: local edits stay, and what both sides changed is told, not lost."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lexarium.domain.accounts import Role
from lexarium.domain.aliases import Alias, Scope
from lexarium.domain.changes import Action, Change, State, Whole
from lexarium.domain.collections import CONCEPT
from lexarium.domain.identifiers import SYSTEM_USER
from lexarium.domain.relations import Edge
from lexarium.exchange.incoming import Incoming, Version
from lexarium.service.access import Caller, add_account
from lexarium.service.checking import check
from lexarium.service.desk import Desk
from lexarium.service.importing import import_files, import_records
from lexarium.service.reports import Report
from lexarium.store import log, versions
from lexarium.store.database import Database
from tests.test_import import imported, kind_of, listed, one, term


def last(database: Database, identifier: str) -> Change:
    with database.read() as snapshot:
        return log.latest(snapshot, [identifier])[identifier]


def whole(database: Database, identifier: str) -> Whole:
    return last(database, identifier).whole()


class Curator:
    """Edits records as a person would."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._caller = Caller(add_account(database, "Ada", Role.CURATOR), Role.CURATOR, "tok_test")

    def edit(self, identifier: str, **draft: Any) -> None:
        self.do(lambda desk: desk.patch(desk.any(identifier), draft))

    def do(self, work: Callable[[Desk], Any]) -> Any:
        return self._database.run(lambda transaction: work(Desk(transaction, self._caller)))


@pytest.fixture
def curator(database: Database) -> Curator:
    return Curator(database)


@pytest.fixture
def edition(database: Database, tmp_path: Path) -> Callable[..., Report]:
    """Imports an edition of one concept, `trm_a`, with two others beside it."""

    def take(prefer: str | None = None, dry_run: bool = False, **fields: Any) -> Report:
        records = [term("a", **fields), term("b"), term("c")]
        return imported(database, tmp_path, "concept.json", records, prefer=prefer, dry_run=dry_run)

    return take


Edition = Callable[..., Report]


def test_what_only_people_changed_stays_however_often_the_file_comes(
    database: Database, curator: Curator, edition: Edition
) -> None:
    edition()
    curator.edit("trm_a", name="ours", definition_text="Our words.")
    ours = whole(database, "trm_a")
    for _ in range(3):
        report = edition()
        assert not report.changed
        assert report.conflicts.count == 0
        assert whole(database, "trm_a") == ours


def test_what_only_the_file_changed_is_taken_beside_local_edits(
    database: Database, curator: Curator, edition: Edition
) -> None:
    edition()
    curator.edit("trm_a", name="ours")
    report = edition(definition_text="Their words.", def_id="def_new")
    assert dict(report.updated) == {"concept": 1}
    assert report.conflicts.count == 0
    fields = whole(database, "trm_a").fields
    assert (fields["name"], fields["definition_text"], fields["def_id"]) == ("ours", "Their words.", "def_new")
    for _ in range(2):
        assert not edition(definition_text="Their words.", def_id="def_new").changed
    assert whole(database, "trm_a").fields["name"] == "ours", "what stood once stands at every later import"
    assert check(database).problems == []


def test_what_both_changed_is_a_conflict_and_ours_is_kept(
    database: Database, curator: Curator, edition: Edition, tmp_path: Path
) -> None:
    edition()
    curator.edit("trm_a", name="ours", definition_text="Our words.")
    report = edition(name="theirs", definition_text="Their words.", def_id="def_new", last_updated=1999999999999)
    assert not report.changed
    assert [(each.record, each.field, each.ours, each.theirs) for each in report.conflicts.kept] == [
        ("trm_a", "name", "ours", "theirs"),
        ("trm_a", "definition_text", "Our words.", "Their words."),
    ]
    assert report.conflicts.kept[0].where == f"{tmp_path / 'concept.json'}, line 1"
    fields = whole(database, "trm_a").fields
    assert (fields["name"], fields["definition_text"]) == ("ours", "Our words.")
    assert fields["def_id"] not in ("def_a", "def_new"), "a definition keeps its own id, author and stamp"


def test_a_conflict_is_told_until_it_is_said_whose_value_stands(
    database: Database, curator: Curator, edition: Edition
) -> None:
    edition()
    curator.edit("trm_a", name="ours", definition_text="Our words.")
    for _ in range(2):
        assert edition(name="theirs").conflicts.count == 1
    assert edition(prefer="ours", name="theirs").conflicts.count == 0
    assert edition(name="theirs").conflicts.count == 0, "ours stands"
    assert edition(name="newer").conflicts.count == 1
    assert whole(database, "trm_a").fields["name"] == "ours"
    edition(prefer="theirs", name="newer")
    fields = whole(database, "trm_a").fields
    assert (fields["name"], fields["definition_text"]) == ("newer", "Our words.")


def test_theirs_takes_the_files_and_ours_keeps_ours_without_remark(
    database: Database, curator: Curator, edition: Edition
) -> None:
    edition()
    curator.edit("trm_a", name="ours", aliases=[{"text": "mine"}])
    assert edition(prefer="ours", name="theirs").conflicts.count == 0
    assert whole(database, "trm_a").fields["name"] == "ours"
    report = edition(prefer="theirs", name="newer")
    assert (report.conflicts.count, dict(report.updated)) == (0, {"concept": 1})
    fields = whole(database, "trm_a").fields
    assert fields["name"] == "newer"
    assert fields["alias"] == "mine", "what only people changed stays all the same"


def test_a_dry_run_tells_the_conflicts_and_forgets_them(database: Database, curator: Curator, edition: Edition) -> None:
    edition()
    curator.edit("trm_a", name="ours")
    position = database.position()
    assert edition(dry_run=True, name="theirs", definition_text="Their words.").conflicts.count == 1
    assert database.position() == position
    assert edition(name="theirs", definition_text="Their words.").conflicts.count == 1


def test_a_field_that_this_import_does_not_tell_keeps_what_the_one_before_told(
    database: Database, curator: Curator, edition: Edition, tmp_path: Path
) -> None:
    edition()
    curator.edit("trm_a", name="ours")
    imported(database, tmp_path, "concept.json", [{"id": "trm_a", "definition_text": "Their words."}])
    assert not edition(definition_text="Their words.", def_id=whole(database, "trm_a").fields["def_id"]).changed
    assert whole(database, "trm_a").fields["name"] == "ours"


def test_what_people_wrote_into_a_record_that_they_made_is_not_overwritten(
    database: Database, curator: Curator, tmp_path: Path
) -> None:
    other = curator.do(lambda desk: desk.create(CONCEPT, {"name": "other"})).whole.id
    draft = {"name": "Working memory", "definition_text": "Ours.", "relations": {"KINDOF": [other]}}
    ours = curator.do(lambda desk: desk.create(CONCEPT, draft)).whole
    given = {"name": "working memory", "definition_text": "Theirs.", "alias": "WM", "relationships": []}
    file = [{"id": ours.id, "id_user": "usr_7", "creation_time": 7, **given}]
    report = imported(database, tmp_path, "concept.json", file)
    assert [each.field for each in report.conflicts.kept] == ["name", "definition_text"]
    became = whole(database, ours.id)
    assert became.fields["alias"] == "WM", "of what they left empty the file's is taken"
    assert became.edges == ours.edges
    ignored = ("alias", "last_updated")
    assert {**became.fields, **{name: ours.fields[name] for name in ignored}} == ours.fields
    again = imported(database, tmp_path, "concept.json", file)
    assert (again.changed, again.conflicts.count) == (False, 2)
    imported(database, tmp_path, "concept.json", file, prefer="theirs")
    assert whole(database, ours.id).fields["definition_text"] == "Theirs."
    assert check(database).problems == []


def test_relations_people_added_stay_and_those_they_took_away_do_not_come_back(
    database: Database, curator: Curator, edition: Edition
) -> None:
    edition(relationships=[kind_of("b")])
    curator.do(lambda desk: desk.relate(desk.any("trm_a"), "PARTOF", "trm_c"))
    curator.do(lambda desk: desk.unrelate(desk.any("trm_a"), "KINDOF", "trm_b"))
    ours = {Edge("trm_a", "PARTOF", "trm_c")}
    assert not edition(relationships=[kind_of("b")]).changed
    # An import that changes something else writes the record anew, and knows better all the same.
    edition(relationships=[kind_of("b")], name="theirs")
    assert not edition(relationships=[kind_of("b")], name="theirs").changed
    assert whole(database, "trm_a").edges == ours
    edition(relationships=[kind_of("b"), kind_of("c")], name="theirs")
    assert whole(database, "trm_a").edges == ours | {Edge("trm_a", "KINDOF", "trm_c")}
    report = edition(relationships=[kind_of("b")], name="theirs")
    assert (report.relations_added, report.relations_removed) == (0, 1)
    assert whole(database, "trm_a").edges == ours
    assert check(database).problems == []


def test_a_relation_that_the_file_tells_no_more_goes_though_another_field_was_edited(
    database: Database, curator: Curator, edition: Edition
) -> None:
    edition(relationships=[kind_of("b")])
    curator.edit("trm_a", name="ours")
    edition(relationships=[])
    assert whole(database, "trm_a").edges == frozenset()
    assert whole(database, "trm_a").fields["name"] == "ours"


def alias(text: str, lang: str = "en", scope: Scope = "exact") -> Alias:
    return Alias(text=text, lang=lang, scope=scope)


def told(**more: Any) -> Incoming:
    return Incoming(1, "concept", fields={"id": "trm_a", "name": "a"}, **more)


def take(database: Database, *records: Incoming, **options: Any) -> Report:
    return import_records(database, "somewhere", records, **options)


def test_aliases_and_sources_are_taken_kept_and_told_like_fields(database: Database, curator: Curator) -> None:
    first = (alias("eins", lang="de"), alias("one", scope="narrow"))
    take(database, told(aliases=first, sources=("A book",)))
    assert whole(database, "trm_a").aliases == first
    assert whole(database, "trm_a").fields["alias"] == "one"
    assert not take(database, told(aliases=first[::-1], sources=("A book",))).changed, "their order says nothing"
    curator.edit("trm_a", aliases=[{"text": "ours"}])
    report = take(database, told(aliases=(alias("theirs"),), sources=("Another book",)))
    assert [each.field for each in report.conflicts.kept] == ["aliases"]
    assert whole(database, "trm_a").fields["alias"] == "ours"
    assert whole(database, "trm_a").sources == ("Another book",)


def test_an_alias_string_replaces_only_the_names_that_it_can_say(database: Database, tmp_path: Path) -> None:
    take(database, told(aliases=(alias("eins", lang="de"), alias("one", scope="narrow"))))
    imported(database, tmp_path, "concept.json", [{"id": "trm_a", "alias": "one, uno"}])
    assert whole(database, "trm_a").alias_list == (
        alias("one", scope="narrow"),
        alias("uno"),
        alias("eins", lang="de"),
    )
    assert whole(database, "trm_a").fields["alias"] == "one, uno"


def test_a_file_retires_and_brings_back_records_and_says_what_replaces_them(database: Database) -> None:
    other = Incoming(2, "concept", fields={"id": "trm_b", "name": "b"})
    take(database, told(state=State.PUBLISHED), other)
    report = take(database, told(state=State.RETIRED, replaced_by="trm_b"), other)
    assert (dict(report.retired), dict(report.updated)) == ({"concept": 1}, {})
    assert (whole(database, "trm_a").state, whole(database, "trm_a").replaced_by) == (State.RETIRED, "trm_b")
    assert last(database, "trm_a").action == Action.RETIRE
    assert [record["id"] for record in listed(database)] == ["trm_b"]
    assert not take(database, told()).changed, "a file that says nothing of it changes nothing of it"
    take(database, told(state=State.PUBLISHED))
    assert whole(database, "trm_a").state == State.PUBLISHED
    assert check(database).problems == []


def test_what_people_retired_is_not_brought_back_by_the_edition_they_retired_it_from(
    database: Database, curator: Curator
) -> None:
    take(database, told(state=State.PUBLISHED))
    curator.do(lambda desk: desk.retire(desk.any("trm_a")))
    assert not take(database, told(state=State.PUBLISHED)).changed
    assert whole(database, "trm_a").state == State.RETIRED


def test_a_merged_record_is_not_reborn(database: Database, curator: Curator, edition: Edition) -> None:
    edition(relationships=[kind_of("c")])
    curator.do(lambda desk: desk.merge(desk.any("trm_a"), "trm_b"))
    before = [whole(database, name) for name in ("trm_a", "trm_b", "trm_c")]
    report = edition(relationships=[kind_of("c")], name="theirs")
    assert not report.changed
    assert report.refused == 1
    assert "merged into trm_b" in report.warnings.kept[0].detail
    assert [whole(database, name) for name in ("trm_a", "trm_b", "trm_c")] == before
    assert "trm_a" not in [each["id"] for each in one(database, "trm_c")["relationships"]]
    assert check(database).problems == []


def row(suffix: str, **more: Any) -> Incoming:
    return Incoming(1, "concept", fields={"id": f"trm_{suffix}", "name": suffix, **more.pop("fields", {})}, **more)


def reverted(database: Database, curator: Curator, identifier: str, version: int) -> None:
    with database.read() as snapshot:
        past = versions.find_versions(snapshot, [(identifier, version)])[identifier]
    curator.do(lambda desk: desk.revert(past, last(database, identifier).version))


def test_undoing_a_merge_that_an_import_brought_leaves_all_else_that_it_brought(
    database: Database, curator: Curator
) -> None:
    take(database, row("a"), row("b"), row("c"))
    parent = Edge("trm_c", "KINDOF", "trm_b")
    take(
        database,
        row("a", state=State.MERGED, replaced_by="trm_b"),
        row("c", aliases=(alias("see"),), edges=[parent]),
        row("new"),
    )
    before = [last(database, f"trm_{name}") for name in ("b", "c", "new")]
    reverted(database, curator, "trm_a", 1)
    assert whole(database, "trm_a").state == State.PUBLISHED
    assert [last(database, f"trm_{name}") for name in ("b", "c", "new")] == before
    assert check(database).problems == []


def test_what_is_told_to_lead_to_a_record_merged_here_leads_to_its_survivor(
    database: Database, curator: Curator
) -> None:
    take(database, row("a"), row("b"), row("c", edges=[Edge("trm_c", "KINDOF", "trm_a")]))
    curator.do(lambda desk: desk.merge(desk.any("trm_a"), "trm_b"))
    every = {"told": [("KINDOF", "source")]}
    file = [
        row("c", edges=[Edge("trm_c", "KINDOF", "trm_a")], **every),
        row("d", edges=[Edge("trm_d", "KINDOF", "trm_a")], **every),
        row("e", state=State.RETIRED, replaced_by="trm_a"),
    ]
    take(database, *file)
    for source in ("trm_c", "trm_d"):
        assert whole(database, source).edges == {Edge(source, "KINDOF", "trm_b")}
    assert whole(database, "trm_e").replaced_by == "trm_b"
    assert not take(database, *file).changed
    curator.do(lambda desk: desk.unrelate(desk.any("trm_c"), "KINDOF", "trm_b"))
    assert not take(database, *file).changed, "what people took away does not come back"
    assert check(database).problems == []


def test_a_record_that_cannot_be_merged_as_told_is_retired(database: Database, curator: Curator) -> None:
    def gone(suffix: str, into: str | None) -> Incoming:
        return row(suffix, state=State.MERGED, replaced_by=into)

    take(database, row("x"), row("y"), Incoming(1, "disorder", fields={"id": "dso_1", "name": "one"}))
    curator.do(lambda desk: desk.merge(desk.any("trm_y"), "trm_x"))
    told = {"1": None, "2": "trm_2", "3": "trm_4", "4": "trm_3", "5": "trm_nowhere", "6": "dso_1", "x": "trm_y"}
    file = [gone(suffix, into) for suffix, into in told.items()]
    file += [gone("7", "trm_8"), gone("8", "trm_9"), row("9")]
    report = take(database, *file)
    became = {suffix: whole(database, f"trm_{suffix}") for suffix in (*told, "7", "8")}
    assert {suffix for suffix, each in became.items() if each.state == State.RETIRED} == {*told}
    assert {suffix: each.replaced_by for suffix, each in became.items() if each.replaced_by} == {
        "5": "trm_nowhere", "6": "dso_1", "7": "trm_8", "8": "trm_9"
    }  # fmt: skip
    assert sum("told as merged" in note.detail for note in report.warnings.kept) == len(told)
    assert not take(database, *file).changed
    assert check(database).problems == []


def versioned(suffix: str, number: int, write: int, action: Action, **more: Any) -> Incoming:
    fields = {**term(suffix), **more.pop("fields", {})}
    return row(suffix, fields=fields, version=Version(number, write, 1, "usr_1", action, None), **more)


def test_what_a_history_tells_as_merged_into_what_it_cannot_be_is_retired(database: Database, curator: Curator) -> None:
    def gone(suffix: str, into: str) -> Incoming:
        return versioned(suffix, 1, ord(suffix), Action.CREATE, state=State.MERGED, replaced_by=into)

    take(database, row("x", edges=[Edge("trm_x", "KINDOF", "trm_a")]), row("y"))
    curator.do(lambda desk: desk.merge(desk.any("trm_y"), "trm_x"))
    told = {"a": "trm_b", "b": "trm_a", "c": "trm_nowhere", "d": "trm_e", "e": "trm_f", "g": "trm_y"}
    report = take(database, *(gone(*each) for each in told.items()), versioned("f", 1, 1, Action.CREATE))
    became = {suffix: whole(database, f"trm_{suffix}") for suffix in told}
    assert {suffix for suffix, each in became.items() if each.state == State.RETIRED} == {"a", "b", "c"}
    doubted = [note.detail for note in report.warnings.kept if "told as merged" in note.detail]
    assert [doubt.rpartition(" merged into ")[2] for doubt in doubted] == [
        "comes back to itself; it is retired",
        "comes back to itself; it is retired",
        "is no concept of the import or the catalogue; it is retired",
    ]
    curator.edit("trm_x", name="y")
    reverted(database, curator, "trm_x", 1)
    assert check(database).problems == []


def test_undoing_a_merge_that_came_as_history_takes_its_names_back_from_a_survivor_that_was_here(
    database: Database, curator: Curator
) -> None:
    first = [versioned("b", 1, 1, Action.CREATE), versioned("c", 1, 1, Action.CREATE)]
    take(database, *first)
    merge = [
        versioned("a", 1, 2, Action.CREATE),
        versioned("a", 2, 3, Action.MERGE, state=State.MERGED, replaced_by="trm_b"),
        versioned("b", 2, 3, Action.MERGE, aliases=(alias("a"),), edges=[Edge("trm_b", "KINDOF", "trm_c")]),
    ]
    report = take(database, *first, *merge)
    assert (dict(report.created), dict(report.updated), dict(report.unchanged)) == (
        {"concept": 1},
        {"concept": 1},
        {"concept": 1},
    )
    assert last(database, "trm_b").action == Action.MERGE
    assert whole(database, "trm_b").edges == {Edge("trm_b", "KINDOF", "trm_c")}
    assert not take(database, *first, *merge).changed
    reverted(database, curator, "trm_a", 1)
    assert whole(database, "trm_b").alias_list == ()
    assert whole(database, "trm_b").edges == frozenset()
    assert check(database).problems == []


def test_a_history_does_not_go_on_from_what_people_made_of_a_record_here(database: Database, curator: Curator) -> None:
    first = versioned("b", 1, 1, Action.CREATE)
    take(database, first)
    curator.edit("trm_b", definition_text="Ours.")
    take(database, first, versioned("b", 2, 2, Action.UPDATE, fields={"name": "another"}))
    assert last(database, "trm_b").actor == SYSTEM_USER
    fields = whole(database, "trm_b").fields
    assert (fields["name"], fields["definition_text"]) == ("another", "Ours.")


@pytest.mark.parametrize("many", [0, 1_100])
def test_a_class_that_was_merged_here_is_followed(
    database: Database, curator: Curator, tmp_path: Path, many: int
) -> None:
    classes = [Incoming(1, "concept_class", fields={"id": f"ctp_{each}", "name": each}) for each in "ABC"]
    take(database, *classes, row("z", fields={"id_concept_class": "ctp_C"}))
    curator.do(lambda desk: desk.merge(desk.any("ctp_A"), "ctp_B"))
    records = [term("z", id_concept_class="ctp_A"), term("new", id_concept_class="ctp_A")]
    records += [term(f"n{number}") for number in range(many)]
    report = imported(database, tmp_path, "concept.json", records)
    assert report.warnings.count == 0
    assert report.conflicts.count == 0
    assert [whole(database, f"trm_{each}").fields["id_concept_class"] for each in ("z", "new")] == ["ctp_B", "ctp_B"]
    assert not imported(database, tmp_path, "concept.json", records).changed
    curator.edit("trm_new", id_concept_class="ctp_C")
    assert not imported(database, tmp_path, "concept.json", records).changed, "what people changed stays"
    assert check(database).problems == []


def test_a_parent_that_nobody_knows_leaves_the_one_that_was_told_before(database: Database, tmp_path: Path) -> None:
    def table(parent: str, more: str = "") -> Report:
        file = tmp_path / "concept.csv"
        file.write_text(f"id,name,parent\ntrm_a,a,{parent}\n{more}")
        return import_files(database, [file])

    def parents() -> set[str]:
        return {edge.target for edge in whole(database, "trm_a").edges}

    table("b", "trm_b,b,\ntrm_c,c,\n")
    assert parents() == {"trm_b"}
    for unknown in ("mispelt", "X:17"):
        report = table(unknown)
        assert parents() == {"trm_b"}
        assert "is left out" in report.warnings.kept[0].detail
        assert "those of this kind that are there stay" in report.warnings.kept[0].detail
    table("twin", "trm_d,twin,\ntrm_e,Twin,\n")
    assert parents() == {"trm_b"}
    table("c; mispelt")
    assert parents() == {"trm_b", "trm_c"}
    table("c")
    assert parents() == {"trm_c"}
    table("")
    assert parents() == set()


def test_a_circle_of_several_relations_is_told_by_an_import_and_by_a_check(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "concept.csv"
    file.write_text("id,name,KINDOF,PARTOF\ntrm_a,a,trm_b,\ntrm_b,b,,trm_a\ntrm_c,c,trm_a,trm_b\n")
    report = import_files(database, [file])
    (told,) = (note.detail for note in report.warnings.kept)
    assert re.fullmatch("a chain of KINDOF and PARTOF comes back to where it began: (trm_[ab]) → trm_[ab] → \\1", told)
    assert check(database).remarks == [told]
