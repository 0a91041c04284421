"""CSV and TSV: files of any program, and round trips."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lexarium.domain.labels import Alias
from lexarium.domain.record import Record, RecordState, Relation
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT, CONTRAST, DISORDER, Collection
from lexarium.formats.foreign_ids import build_name_reference
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions, WriteOptions
from lexarium.formats.registry import FORMATS
from lexarium.formats.tables import codec, dialect
from lexarium.formats.tables.cells import (
    escape_formula,
    format_line,
    join_aliases,
    join_values,
    split_aliases,
    split_values,
    unescape_formula,
)
from lexarium.formats.tables.header import TITLE_SYNONYMS
from tests.support.imports import open_text
from tests.support.records import make_record
from tests.support.strategies import (
    LONG_RECORD,
    VOCABULARY,
    aliases,
    nonempty_texts,
    record_lists,
    texts,
)


def read_table(
    text: str, collection: Collection | None = CONCEPT, map: Mapping[str, str] | None = None, format: str = "csv"
) -> list[ParsedRecord]:
    reading = ReadOptions(FORMATS[format], VOCABULARY, default_collection=collection, column_mapping=map or {})
    return list(codec.read(open_text(text.encode()), reading))


def read_records(
    text: str, collection: Collection = CONCEPT, map: Mapping[str, str] | None = None
) -> list[ParsedRecord]:
    return [record for record in read_table(text, collection, map) if record.line]


def read_warnings(text: str, collection: Collection = CONCEPT, map: Mapping[str, str] | None = None) -> list[str]:
    return [warning.message for record in read_table(text, collection, map) for warning in record.warnings]


def read_problems(text: str) -> list[tuple[int, str]]:
    return [
        (imported_record.line, problem) for imported_record in read_table(text) for problem in imported_record.problems
    ]


def read_names(text: str) -> list[tuple[int, str]]:
    return [(record.line, record.fields["name"]) for record in read_records(text)]


def write_table(record_list: list[Record], format: str = "csv") -> bytes:
    return b"".join(codec.write(record_list, WriteOptions(FORMATS[format], VOCABULARY)))


def catch_malformed(text: str) -> tuple[str, int, int]:
    with pytest.raises(ParseError) as caught:
        read_table(text)
    return caught.value.reason, caught.value.line, caught.value.column


@settings(deadline=None)
@given(record_lists, st.sampled_from(["csv", "tsv"]))
@example([LONG_RECORD], "csv")
def test_any_records_are_unchanged_after_writing_and_reading(record_list: list[Record], format: str) -> None:
    reread = read_table(write_table(record_list, format).decode(), None, format=format)
    assert len(reread) == len(record_list)
    for imported_record, record in zip(reread, record_list, strict=True):
        expected_fields = {
            name: record.fields[name]
            for name in record.collection.core_fields
            if name != record.collection.alias_field or not record.stored_aliases
        }
        assert imported_record.problems == []
        assert imported_record.collection == record.collection.name
        assert imported_record.fields == expected_fields
        has_text = record.collection.alias_field in expected_fields
        assert imported_record.aliases == (None if has_text else record.aliases)
        assert imported_record.sources == record.sources
        assert (imported_record.state, imported_record.replaced_by) == (record.state, record.replaced_by)
        assert sorted(imported_record.relations) == sorted(record.relations)
        assert sorted(name for name, _ in imported_record.complete_relations) == sorted(
            record.collection.relation_types
        )


@given(texts)
@example("＝1")
def test_formulas_are_escaped_and_every_cell_is_restored(text: str) -> None:
    cell = escape_formula(text)
    assert not cell.startswith(tuple("=+-@\t\r\n＝＋－＠"))
    assert unescape_formula(cell) == text


@given(st.lists(texts, min_size=2), st.sampled_from(",\t"))
@example(["a,b", 'c"d', "e\rf", "g\nh", "i\tj"], ",")
def test_a_line_is_written_like_the_csv_module_writes_it(cells: list[str], delimiter: str) -> None:
    expected = io.StringIO(newline="")
    csv.writer(expected, delimiter=delimiter, lineterminator="\r\n").writerow(cells)
    assert format_line(cells, delimiter).decode() == expected.getvalue()


@given(st.lists(nonempty_texts))
def test_a_list_in_a_cell_is_unchanged_after_joining_and_splitting(texts: list[str]) -> None:
    assert split_values(join_values(texts)) == texts


@given(aliases)
def test_aliases_in_a_cell_are_unchanged_after_a_round_trip(aliases: list[Alias]) -> None:
    assert split_aliases(join_aliases(aliases, "de"), "de") == aliases


def test_aliases_in_a_cell_have_language_and_scope() -> None:
    parsed_aliases = split_aliases("WM; Arbeitsgedächtnis @de ; a@b; C @/narrow;D @pt-BR/hidden; E @nobody knows", "en")
    assert [(parsed_alias.text, parsed_alias.lang, parsed_alias.scope) for parsed_alias in parsed_aliases] == [
        ("WM", "en", "exact"),
        ("Arbeitsgedächtnis", "de", "exact"),
        ("a@b", "en", "exact"),
        ("C", "en", "narrow"),
        ("D", "pt-BR", "hidden"),
        ("E @nobody knows", "en", "exact"),
    ]
    assert [parsed_alias.text for parsed_alias in split_aliases("one; two | three\\|four", "en")] == [
        "one; two",
        "three|four",
    ]


def test_a_table_has_bom_crlf_and_escaped_formulas() -> None:
    record = make_record(DISORDER, {**LONG_RECORD.fields, "name": "=HYPERLINK(1)", "definition": "a, “b”\nc"})
    text = write_table([record]).decode()
    assert text.startswith("\ufeffcollection,id,name,definition,alias,aliases,sources,")
    assert text.count("\r\n") == 2
    header, row = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    assert dict(zip(header, row, strict=True))["name"] == "'=HYPERLINK(1)"
    assert dict(zip(header, row, strict=True))["definition"] == "a, “b”\nc"
    assert write_table([record], "tsv").decode().startswith("collection\tid\tname\t")


def test_a_manually_added_row_leaves_server_fields_empty() -> None:
    row = ["concept", "", "new"] + [""] * (len(codec.EXPORT_COLUMNS) - 3)
    text = write_table([]).decode() + ",".join(row) + "\r\n"
    parsed = read_table(text, None)[0]
    assert parsed.fields == {"name": "new", "definition_text": "", "alias": "", "id_concept_class": ""}
    assert (parsed.state, parsed.sources) == (None, ())


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_detected_for_any_cell_content(delimiter: str) -> None:
    hostile = 'a;b;c,d,e|f|g\th "x", y'
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerows(
        [["ID", "Label", "Definition"], ["A:1", hostile, ""], ["A:2", "", hostile], ["A:3", ";;;", ",,,,"]]
    )
    assert read_names(text.getvalue()) == [(2, hostile), (3, ""), (4, ";;;")]


def test_a_table_of_one_column_is_read() -> None:
    assert read_names("Name\nmemory\nattention; selective\n") == [(2, "memory"), (3, "attention; selective")]
    assert read_names("Name\nmemory, working\nattention\n") == [(2, "memory, working"), (3, "attention")]


def test_other_quote_styles_are_detected() -> None:
    assert read_names("'id','name'\n'A:1','it''s; \"so\"'\n") == [(2, 'it\'s; "so"')]
    assert read_names('id,name,definition\nA:1,"say \\"so\\", please",x\nA:2,y,z\n') == [
        (2, 'say "so", please'),
        (3, "y"),
    ]
    assert read_names("id, name\nA:1, x\n") == [(2, "x")]


def test_files_saved_by_spreadsheets_are_read() -> None:
    text = '\ufeffsep=;\r\nID;Name;Definition;;\r\nA:1;one;"line\r\nbreak; here";;\r\n;;;;\r\n'
    text += "A:2;two\r\n\r\nA:3;three;;;\r\n"
    assert read_names(text) == [(3, "one"), (6, "two"), (8, "three")]
    assert read_records(text)[0].fields["definition_text"] == "line\r\nbreak; here"
    assert read_warnings(text) == [
        "a row has fewer cells than there are columns; missing cells are read as empty (on line 6)"
    ]


def test_lines_are_counted_correctly_after_line_breaks_in_cells() -> None:
    text = 'name,definition\none,"a\nb\n\nc"\ntwo,x\n"three\n",y\nfour,\n'
    assert [line for line, _ in read_names(text)] == [2, 6, 7, 9]
    assert [line for line, _ in read_names(text.replace("\n", "\r\n"))] == [2, 6, 7, 9]
    assert [line for line, _ in read_names(text.replace("\n", "\r"))] == [2, 6, 7, 9]


@pytest.mark.parametrize(
    "title", ["Label", "preferred term", "PREF_LABEL", "skos:prefLabel", "http://x.org/y#prefLabel", "Title", "Name:"]
)
def test_columns_are_recognized_by_common_titles(title: str) -> None:
    assert read_records(f"id,{title}\nA:1,x\n")[0].fields["name"] == "x"


def test_the_csv_export_of_a_public_portal_is_read() -> None:
    text = (
        "Class ID,Preferred Label,Synonyms,Definitions,Obsolete,CUI,Semantic Types,Parents\n"
        'http://x.org/1,one,uno|ein,"What it is",false,,,http://x.org/2\nhttp://x.org/3,three,,,TRUE,C1,,\n'
    )
    parsed = read_records(text, DISORDER)
    assert (parsed[0].foreign_id, parsed[0].fields) == ("http://x.org/1", {"name": "one", "definition": "What it is"})
    assert [alias.text for alias in parsed[0].aliases or ()] == ["uno", "ein"]
    assert parsed[0].relations == [Relation("http://x.org/1", "ISA", "http://x.org/2")]
    assert parsed[0].complete_relations == [("ISA", "source")]
    assert [record.state for record in parsed] == [RecordState.PUBLISHED, RecordState.RETIRED]
    assert read_warnings(text) == [
        "the column CUI (6) is not known; it was skipped. map it with --map CUI=FIELD",
        "the column Semantic Types (7) is not known; it was skipped. map it with --map 'Semantic Types=FIELD'",
    ]


def test_parents_are_given_by_id_code_or_name() -> None:
    text = "ID,Name,Parent\nA:1,one,trm_1; https://example.org/id/trm_2;B:7\n12,Two,one\n13,three,12|TWO\n"
    parsed = read_records(text)
    two, three = build_name_reference("concept", "Two"), build_name_reference("concept", "three")
    assert [relation.target for relation in parsed[0].relations] == ["trm_1", "trm_2", "B:7"]
    assert parsed[1].relations == [Relation(two, "KINDOF", "A:1")]
    assert parsed[2].relations == [Relation(three, "KINDOF", two), Relation(three, "KINDOF", two)]
    assert "id" not in parsed[1].fields
    assert parsed[1].foreign_id == ""
    assert [warning for warning in read_warnings(text) if "goes by name" in warning]


def test_a_name_refers_to_a_row_of_the_target_collection_of_the_relation() -> None:
    text = "collection,id,name,asserts\ntask,A:1,recall,recall\nconcept,A:2,recall,\n"
    assert read_records(text)[0].relations == [Relation("A:1", "ASSERTS", "A:2")]


def test_an_ambiguous_parent_is_skipped_and_an_unknown_one_is_looked_up_in_the_catalogue() -> None:
    text = "id,name,parent\nA:1,one,nobody\nA:2,two,same\nA:3,same,\nA:4,Same,\n"
    elsewhere = Relation("A:1", "KINDOF", build_name_reference("concept", "nobody"))
    assert [record.relations for record in read_records(text)] == [[elsewhere], [], [], []]
    assert read_warnings(text) == ["parent of A:2 names 'same': several rows have this name; it was skipped"]
    assert [record.complete_relations for record in read_records(text)] == [
        [("KINDOF", "source")],
        [],
        *[[("KINDOF", "source")]] * 2,
    ]


def test_a_column_mapping_takes_precedence_over_column_titles() -> None:
    text = "Code,Name,Begriff,Oberbegriff,Mehr\nA:1,x,y,A:2,z\n"
    parsed = read_records(text, CONCEPT, {"Begriff": "name", "Oberbegriff": "PARTOF", "Mehr": "definition"})[0]
    assert parsed.fields == {"name": "y", "definition_text": "z"}
    assert parsed.relations == [Relation("A:1", "PARTOF", "A:2")]
    assert read_warnings(text, CONCEPT, {"Begriff": "name", "Weg": "id"}) == [
        "the column Name (2) is not known; it was skipped. map it with --map Name=FIELD",
        "the column Oberbegriff (4) is not known; it was skipped. map it with --map Oberbegriff=FIELD",
        "the column Mehr (5) is not known; it was skipped. map it with --map Mehr=FIELD",
        "there is no column Weg, which --map names",
    ]


def test_columns_that_the_collection_lacks_are_reported_and_skipped() -> None:
    text = "id,name,definition,parent,id_protocol,asserts\nA:1,x,d,A:2,p,A:3\nA:2,y,,,,\n"
    assert read_records(text, CONTRAST)[0].relations == []
    assert read_warnings(text, CONTRAST) == [
        f"the column {title} is not supported for a contrast; it was skipped (on line 2)"
        for title in ("definition", "parent", "id_protocol", "asserts")
    ]


def test_several_columns_may_contain_aliases() -> None:
    text = "id,name,Synonyms,Abbreviations,Related synonyms\nA:1,x,a|b,c,d\n"
    assert [(parsed_alias.text, parsed_alias.scope) for parsed_alias in read_records(text)[0].aliases or ()] == [
        ("a", "exact"),
        ("b", "exact"),
        ("c", "exact"),
        ("d", "related"),
    ]


def test_the_collection_is_determined_by_its_column_then_by_the_file() -> None:
    text = "collection,id,name\nDisorder,A:1,x\n,A:2,y\nanimal,A:3,z\n"
    assert [record.collection for record in read_records(text)] == ["disorder", "concept", ""]
    assert read_problems(text) == [(4, f"its collection is 'animal', which is not one of {', '.join(COLLECTIONS)}")]
    with pytest.raises(ParseError, match="line 3, column 1: the collection of the records is unknown"):
        read_table(text, None)


def test_a_table_without_column_titles_is_rejected() -> None:
    assert catch_malformed("") == ("the file is empty; a line that names columns was expected", 1, 1)
    reason, line, column = catch_malformed("A:1,memory,what it is\nA:2,attention,more\n")
    assert (line, column) == (1, 1)
    assert "should name the columns" in reason
    assert "A:1, memory, what it is" in reason


def test_two_columns_for_one_field_are_rejected() -> None:
    assert catch_malformed("\nid,Label,Name\nA:1,x,y\n") == (
        "the columns 2 (Label) and 3 (Name) both seem to be the name: "
        "keep one of them, or say which with --map Label=name",
        2,
        1,
    )


def test_rows_that_do_not_match_the_header_are_reported_with_their_lines() -> None:
    assert read_problems("id,name,definition\nA:1,x,y,z\nA:2,x,y,,\nA:3\n,,d\n") == [
        (2, "the row has 4 cells, but the first line names 3 columns"),
        (4, "the row has 1 of 3 cells, too few for its id and name"),
        (5, "the row has neither an id nor a name"),
    ]


def test_invalid_values_are_reported_with_their_lines() -> None:
    assert read_problems("id,name,state,creation_time\nA:1,x,gone,soon\n") == [
        (2, "the state of A:1 is 'gone', which is not one of published, retired, merged"),
        (2, "creation_time of A:1 is not a whole number: soon"),
    ]


def test_numbers_in_spreadsheet_notation_are_read_unless_they_were_rounded() -> None:
    parsed = read_table('id,name,creation_time\nA:1,x,1577934245000.0\nA:2,y,"1577934245000,00"\n')
    assert [record.fields["creation_time"] for record in parsed] == [1577934245000, 1577934245000]
    [(line, problem)] = read_problems("id,name,creation_time\nA:1,x,1.57793E+12\n")
    assert line == 2
    assert "1.57793E+12, as spreadsheets write long numbers, having rounded them" in problem


def test_an_unclosed_quote_is_reported_where_it_begins() -> None:
    text = 'name,definition\none,"a\nb"\ntwo,"c ""d"\nthree,"never\nclosed,x\n'
    assert catch_malformed(text) == ("the quote that begins here is never closed", 5, 7)
    assert catch_malformed('name,definition\none,"a\nb","c\n')[1:] == (3, 4)


def test_text_after_a_closing_quote_is_reported() -> None:
    reason, line, column = catch_malformed('name,definition\none,"a\nb" c,d\n')
    assert (line, column) == (3, 3)
    assert reason.startswith("the end of the cell was expected after its closing quote")


def test_an_endless_cell_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    before = csv.field_size_limit(1_000)
    monkeypatch.setattr(dialect, "MAX_CELL_CHARS", 1_000)
    try:
        reason, line, column = catch_malformed('name\n"' + "x\n" * 1_000)
        assert (line, column) == (2, 1)
        assert "perhaps the quote that begins here is never closed" in reason
        assert catch_malformed("name\n" + "x" * 1_001)[1:] == (2, 1)
    finally:
        csv.field_size_limit(before)


def test_every_documented_column_title_is_recognized() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "formats.md"
    table_rows = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    for meaning, spellings in TITLE_SYNONYMS.items():
        assert [line for line in table_rows if line.endswith(f" | {spellings} |")], meaning
        for title in spellings.split(", "):
            header = title if meaning in ("id", "name") else f"id,{title}"
            assert not [warning for warning in read_warnings(f"{header}\n") if "not known" in warning], (meaning, title)


@pytest.mark.parametrize("row", ['"\n",' * 1_000_001, "a," * 1_000_001, f'"{"x" * (9 << 20)}\n",' * 4])
def test_an_endless_row_is_rejected(row: str) -> None:
    reason, line, column = catch_malformed(f"name,definition\n{row}")
    assert reason.startswith("a row has more than 33,554,432 characters, or 1,000,000 lines or cells")
    assert (line, column) == (2, 1)
