"""CSV and TSV: read whatever program saved them, and read back as they were written."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lexarium.domain.aliases import Alias
from lexarium.domain.changes import State, Whole
from lexarium.domain.collections import CONCEPT, CONTRAST, DISORDER, Collection
from lexarium.domain.relations import Edge
from lexarium.exchange import delimited, tables
from lexarium.exchange.cells import guarded, joined, joined_aliases, parted, parted_aliases, unguarded
from lexarium.exchange.columns import SPELLINGS
from lexarium.exchange.formats import FORMATS
from lexarium.exchange.incoming import Incoming, Malformed, Reading
from lexarium.exchange.notions import label_key
from tests.wholes import ABOUT, LONG_ONE, aliases, catalogues, relations_of, some_text, texts


def read(
    text: str, collection: Collection | None = CONCEPT, map: Mapping[str, str] | None = None, format: str = "csv"
) -> list[Incoming]:
    reading = Reading(FORMATS[format], ABOUT, fallback=collection, map=map or {})
    return list(tables.read(io.BytesIO(text.encode()), reading))


def records(text: str, collection: Collection = CONCEPT, map: Mapping[str, str] | None = None) -> list[Incoming]:
    return [each for each in read(text, collection, map) if each.line]


def warnings(text: str, collection: Collection = CONCEPT, map: Mapping[str, str] | None = None) -> list[str]:
    return [each for incoming in read(text, collection, map) for each in incoming.warnings]


def problems(text: str) -> list[tuple[int, str]]:
    return [(incoming.line, each) for incoming in read(text) for each in incoming.problems]


def names(text: str) -> list[tuple[int, str]]:
    return [(each.line, each.fields["name"]) for each in records(text)]


def written(wholes: list[Whole], format: str = "csv") -> bytes:
    return b"".join(tables.write(FORMATS[format], ABOUT, wholes))


def malformed(text: str) -> tuple[str, int, int]:
    with pytest.raises(Malformed) as caught:
        read(text)
    return caught.value.reason, caught.value.line, caught.value.column


@settings(deadline=None)
@given(catalogues, st.sampled_from(["csv", "tsv"]))
@example([LONG_ONE], "csv")
def test_what_is_written_is_read_as_it_was(wholes: list[Whole], format: str) -> None:
    back = read(written(wholes, format).decode(), None, format=format)
    assert len(back) == len(wholes)
    for incoming, whole in zip(back, wholes, strict=True):
        given = {name: value for name, value in whole.fields.items() if name != "alias" or whole.aliases is None}
        assert incoming.problems == []
        assert incoming.collection == whole.collection.name
        assert incoming.fields == given
        assert incoming.aliases == (None if "alias" in given else whole.alias_list)
        assert incoming.sources == whole.sources
        assert (incoming.state, incoming.replaced_by) == (whole.state, whole.replaced_by)
        assert sorted(incoming.edges) == sorted(whole.edges)
        assert sorted(name for name, _ in incoming.told) == sorted(relations_of(whole.collection))


@given(texts)
@example("＝1")
def test_no_cell_is_run_by_a_spreadsheet_and_every_cell_comes_back(text: str) -> None:
    cell = guarded(text)
    assert not cell.startswith(tuple("=+-@\t\r\n＝＋－＠"))
    assert unguarded(cell) == text


@given(st.lists(some_text))
def test_a_list_in_a_cell_comes_back(texts: list[str]) -> None:
    assert parted(joined(texts)) == texts


@given(aliases)
def test_other_names_in_a_cell_come_back(aliases: list[Alias]) -> None:
    assert parted_aliases(joined_aliases(aliases, "de"), "de") == aliases


def test_other_names_say_their_language_and_scope() -> None:
    found = parted_aliases("WM; Arbeitsgedächtnis @de ; a@b; C @/narrow;D @pt-BR/hidden; E @nobody knows", "en")
    assert [(each.text, each.lang, each.scope) for each in found] == [
        ("WM", "en", "exact"),
        ("Arbeitsgedächtnis", "de", "exact"),
        ("a@b", "en", "exact"),
        ("C", "en", "narrow"),
        ("D", "pt-BR", "hidden"),
        ("E @nobody knows", "en", "exact"),
    ]
    assert [each.text for each in parted_aliases("one; two | three\\|four", "en")] == ["one; two", "three|four"]


def test_a_table_is_what_spreadsheets_and_scripts_expect() -> None:
    whole = Whole(DISORDER, {**LONG_ONE.fields, "name": "=HYPERLINK(1)", "definition": "a, “b”\nc"})
    text = written([whole]).decode()
    assert text.startswith("\ufeffcollection,id,name,definition,alias,aliases,sources,")
    assert text.count("\r\n") == 2
    header, row = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    assert dict(zip(header, row, strict=True))["name"] == "'=HYPERLINK(1)"
    assert dict(zip(header, row, strict=True))["definition"] == "a, “b”\nc"
    assert written([whole], "tsv").decode().startswith("collection\tid\tname\t")


def test_a_row_added_by_hand_leaves_what_is_the_servers_to_the_server() -> None:
    row = ["concept", "", "new"] + [""] * (len(tables.HEADER) - 3)
    text = written([]).decode() + ",".join(row) + "\r\n"
    found = read(text, None)[0]
    assert found.fields == {"name": "new", "definition_text": "", "alias": "", "id_concept_class": ""}
    assert (found.state, found.sources) == (None, ())


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_out_whatever_cells_hold(delimiter: str) -> None:
    hostile = 'a;b;c,d,e|f|g\th "x", y'
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerows(
        [["ID", "Label", "Definition"], ["A:1", hostile, ""], ["A:2", "", hostile], ["A:3", ";;;", ",,,,"]]
    )
    assert names(text.getvalue()) == [(2, hostile), (3, ""), (4, ";;;")]


def test_a_table_of_one_column_is_read() -> None:
    assert names("Name\nmemory\nattention; selective\n") == [(2, "memory"), (3, "attention; selective")]
    assert names("Name\nmemory, working\nattention\n") == [(2, "memory, working"), (3, "attention")]


def test_quotes_of_other_kinds_are_found_out() -> None:
    assert names("'id','name'\n'A:1','it''s; \"so\"'\n") == [(2, 'it\'s; "so"')]
    assert names('id,name,definition\nA:1,"say \\"so\\", please",x\nA:2,y,z\n') == [(2, 'say "so", please'), (3, "y")]
    assert names("id, name\nA:1, x\n") == [(2, "x")]


def test_what_a_spreadsheet_saves_is_read() -> None:
    text = '\ufeffsep=;\r\nID;Name;Definition;;\r\nA:1;one;"line\r\nbreak; here";;\r\n;;;;\r\n'
    text += "A:2;two\r\n\r\nA:3;three;;;\r\n"
    assert names(text) == [(3, "one"), (6, "two"), (8, "three")]
    assert records(text)[0].fields["definition_text"] == "line\r\nbreak; here"
    assert warnings(text) == [
        "a row has fewer cells than there are columns; the others are taken to be empty (on line 6)"
    ]


def test_lines_are_counted_right_after_line_breaks_in_cells() -> None:
    text = 'name,definition\none,"a\nb\n\nc"\ntwo,x\n"three\n",y\nfour,\n'
    assert [line for line, _ in names(text)] == [2, 6, 7, 9]
    assert [line for line, _ in names(text.replace("\n", "\r\n"))] == [2, 6, 7, 9]
    assert [line for line, _ in names(text.replace("\n", "\r"))] == [2, 6, 7, 9]


@pytest.mark.parametrize(
    "title", ["Label", "preferred term", "PREF_LABEL", "skos:prefLabel", "http://x.org/y#prefLabel", "Title", "Name:"]
)
def test_columns_are_known_by_many_names(title: str) -> None:
    assert records(f"id,{title}\nA:1,x\n")[0].fields["name"] == "x"


def test_the_export_of_a_public_portal_is_understood() -> None:
    text = (
        "Class ID,Preferred Label,Synonyms,Definitions,Obsolete,CUI,Semantic Types,Parents\n"
        'http://x.org/1,one,uno|ein,"What it is",false,,,http://x.org/2\nhttp://x.org/3,three,,,TRUE,C1,,\n'
    )
    found = records(text, DISORDER)
    assert (found[0].foreign, found[0].fields) == ("http://x.org/1", {"name": "one", "definition": "What it is"})
    assert [alias.text for alias in found[0].aliases or ()] == ["uno", "ein"]
    assert found[0].edges == [Edge("http://x.org/1", "ISA", "http://x.org/2")]
    assert found[0].told == [("ISA", "source")]
    assert [each.state for each in found] == [State.PUBLISHED, State.RETIRED]
    assert warnings(text) == [
        "the column CUI (6) is not known; it was left out. --map can say what it means",
        "the column Semantic Types (7) is not known; it was left out. --map can say what it means",
    ]


def test_parents_are_named_by_id_by_code_or_by_name() -> None:
    text = "ID,Name,Parent\nA:1,one,trm_1; https://example.org/id/trm_2;B:7\n12,Two,one\n13,three,12|TWO\n"
    found = records(text)
    two, three = label_key("concept", "Two"), label_key("concept", "three")
    assert [edge.target for edge in found[0].edges] == ["trm_1", "trm_2", "B:7"]
    assert found[1].edges == [Edge(two, "KINDOF", "A:1")]
    assert found[2].edges == [Edge(three, "KINDOF", two), Edge(three, "KINDOF", two)]
    assert "id" not in found[1].fields
    assert found[1].foreign == ""
    assert [each for each in warnings(text) if "goes by name" in each]


def test_a_name_means_the_row_of_the_collection_that_the_relation_asks_for() -> None:
    text = "collection,id,name,asserts\ntask,A:1,recall,recall\nconcept,A:2,recall,\n"
    assert records(text)[0].edges == [Edge("A:1", "ASSERTS", "A:2")]


def test_a_parent_that_several_rows_are_called_is_left_out_and_one_that_none_is_may_be_in_the_catalogue() -> None:
    text = "id,name,parent\nA:1,one,nobody\nA:2,two,same\nA:3,same,\nA:4,Same,\n"
    elsewhere = Edge("A:1", "KINDOF", label_key("concept", "nobody"))
    assert [each.edges for each in records(text)] == [[elsewhere], [], [], []]
    assert warnings(text) == ["parent of A:2 names 'same': several rows are called so; it was left out"]
    assert [each.told for each in records(text)] == [[("KINDOF", "source")], [], *[[("KINDOF", "source")]] * 2]


def test_a_map_says_what_a_column_means_and_goes_before_its_name() -> None:
    text = "Code,Name,Begriff,Oberbegriff,Mehr\nA:1,x,y,A:2,z\n"
    found = records(text, CONCEPT, {"Begriff": "name", "Oberbegriff": "PARTOF", "Mehr": "definition"})[0]
    assert found.fields == {"name": "y", "definition_text": "z"}
    assert found.edges == [Edge("A:1", "PARTOF", "A:2")]
    assert warnings(text, CONCEPT, {"Begriff": "name", "Weg": "id"}) == [
        "the column Name (2) is not known; it was left out. --map can say what it means",
        "the column Oberbegriff (4) is not known; it was left out. --map can say what it means",
        "the column Mehr (5) is not known; it was left out. --map can say what it means",
        "there is no column Weg, though --map speaks of it",
    ]


def test_what_a_collection_does_not_have_is_told_and_left_out() -> None:
    text = "id,name,definition,parent,id_protocol,asserts\nA:1,x,d,A:2,p,A:3\nA:2,y,,,,\n"
    assert records(text, CONTRAST)[0].edges == []
    assert warnings(text, CONTRAST) == [
        f"the column {title} means nothing for a contrast; it was left out (on line 2)"
        for title in ("definition", "parent", "id_protocol", "asserts")
    ]


def test_several_columns_may_hold_other_names() -> None:
    text = "id,name,Synonyms,Abbreviations,Related synonyms\nA:1,x,a|b,c,d\n"
    assert [(each.text, each.scope) for each in records(text)[0].aliases or ()] == [
        ("a", "exact"),
        ("b", "exact"),
        ("c", "exact"),
        ("d", "related"),
    ]


def test_the_collection_is_told_by_its_column_else_by_the_file() -> None:
    text = "collection,id,name\nDisorder,A:1,x\n,A:2,y\nanimal,A:3,z\n"
    assert [each.collection for each in records(text)] == ["disorder", "concept", ""]
    assert problems(text) == [
        (4, "its collection is 'animal', which is none of concept, task, disorder, contrast, concept_class")
    ]
    with pytest.raises(Malformed, match="line 3, column 1: nothing tells which collection"):
        read(text, None)


def test_a_table_without_names_of_columns_is_refused() -> None:
    assert malformed("") == ("the file is empty; a line that names columns was expected", 1, 1)
    reason, line, column = malformed("A:1,memory,what it is\nA:2,attention,more\n")
    assert (line, column) == (1, 1)
    assert "should name the columns" in reason
    assert "A:1, memory, what it is" in reason


def test_two_columns_for_one_thing_are_refused() -> None:
    assert malformed("\nid,Label,Name\nA:1,x,y\n") == (
        "the columns 2 (Label) and 3 (Name) both seem to be the name: "
        "keep one of them, or say which with --map 'Label=name'",
        2,
        1,
    )


def test_rows_that_do_not_fit_are_named_with_their_lines() -> None:
    assert problems("id,name,definition\nA:1,x,y,z\nA:2,x,y,,\nA:3\n,,d\n") == [
        (2, "the row has 4 cells, but the first line names 3 columns"),
        (4, "the row has 1 of 3 cells, too few for its id and name"),
        (5, "the row has neither an id nor a name"),
    ]


def test_values_that_are_none_are_named_with_their_lines() -> None:
    assert problems("id,name,state,creation_time\nA:1,x,gone,soon\n") == [
        (2, "the state of A:1 is 'gone', which is none of published, retired, merged"),
        (2, "creation_time of A:1 is not a whole number: soon"),
    ]


def test_numbers_that_a_spreadsheet_has_saved_are_read_where_it_has_not_rounded_them() -> None:
    found = read('id,name,creation_time\nA:1,x,1577934245000.0\nA:2,y,"1577934245000,00"\n')
    assert [each.fields["creation_time"] for each in found] == [1577934245000, 1577934245000]
    [(line, problem)] = problems("id,name,creation_time\nA:1,x,1.57793E+12\n")
    assert line == 2
    assert "1.57793E+12, as spreadsheets write long numbers, having rounded them" in problem


def test_a_quote_that_is_never_closed_is_named_where_it_begins() -> None:
    text = 'name,definition\none,"a\nb"\ntwo,"c ""d"\nthree,"never\nclosed,x\n'
    assert malformed(text) == ("the quote that begins here is never closed", 5, 7)
    assert malformed('name,definition\none,"a\nb","c\n')[1:] == (3, 4)


def test_what_follows_a_closing_quote_is_named() -> None:
    reason, line, column = malformed('name,definition\none,"a\nb" c,d\n')
    assert (line, column) == (3, 3)
    assert reason.startswith("the end of the cell was expected after its closing quote")


def test_a_cell_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    before = csv.field_size_limit(1_000)
    monkeypatch.setattr(delimited, "LONGEST_CELL", 1_000)
    try:
        reason, line, column = malformed('name\n"' + "x\n" * 1_000)
        assert (line, column) == (2, 1)
        assert "perhaps the quote that begins here is never closed" in reason
        assert malformed("name\n" + "x" * 1_001)[1:] == (2, 1)
    finally:
        csv.field_size_limit(before)


def test_every_name_of_a_column_that_the_documents_tell_is_known() -> None:
    documents = (Path(__file__).parents[1] / "docs").glob("exchange*.md")
    told = [line for path in documents for line in path.read_text().splitlines() if line.startswith("| ")]
    for meaning, spellings in SPELLINGS.items():
        assert [line for line in told if line.endswith(f" | {spellings} |")], meaning
        for title in spellings.split(", "):
            header = title if meaning in ("id", "name") else f"id,{title}"
            assert not [each for each in warnings(f"{header}\n") if "not known" in each], (meaning, title)


@pytest.mark.parametrize("row", ['"\n",' * 1_000_001, "a," * 1_000_001, f'"{"x" * (9 << 20)}\n",' * 4])
def test_a_row_that_does_not_end_is_refused(row: str) -> None:
    reason, line, column = malformed(f"name,definition\n{row}")
    assert reason.startswith("a row has more than 33,554,432 characters, or 1,000,000 lines or cells")
    assert (line, column) == (2, 1)
