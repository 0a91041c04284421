"""Compressed files, other encodings, unknown file names and column names."""

import bz2
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import zstandard

from lexarium.domain.errors import ImportRejected, InvalidInput
from lexarium.formats import reading
from lexarium.formats.column_mapping import parse_mapping_options
from lexarium.formats.detection import UnknownFormatError, detect_format
from lexarium.formats.parsed import ParseError
from lexarium.formats.reading import UnreadableFileError, open_documents
from lexarium.formats.registry import FORMATS
from lexarium.formats.text_encoding import Utf8Stream
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from tests.support.databases import DatabaseUrlFactory
from tests.support.imports import build_term, list_records, write_json
from tests.support.server import run_cli, run_cli_with_input


def zip_members(*members: tuple[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


RECORDS = [build_term("a"), build_term("b")]
TEXT = json.dumps(RECORDS).encode()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("concept.json.gz", gzip.compress(TEXT)),
        ("concept.json.bz2", bz2.compress(TEXT)),
        ("concept.json.xz", lzma.compress(TEXT)),
        ("concept.json.zst", zstandard.compress(TEXT)),
        ("concept.json.zst", zstandard.compress(TEXT[:50]) + zstandard.compress(TEXT[50:])),
        ("concept.json.zip", zip_members(("concept.json", TEXT))),
        ("concept.json.zip", zip_members(("data", TEXT))),
        ("all.zip", zip_members(("concept.json", TEXT), ("__MACOSX/concept.json", b"\0"), ("folder/", b""))),
        ("concept.json", gzip.compress(TEXT)),
        ("concept.json", gzip.compress(TEXT[:50]) + gzip.compress(TEXT[50:])),
        ("concept", TEXT),
        ("concept.JSON", b"\xef\xbb\xbf" + TEXT),
        ("concept.json", TEXT.decode().encode("utf-16")),
        ("concept.json", b"\xfe\xff" + TEXT.decode().encode("utf-16-be")),
    ],
)
def test_a_file_is_read_in_any_packing(new_database: Database, tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    report = import_files(new_database, [path])
    assert dict(report.created) == {"concept": 2}
    assert report.warnings.count == 0
    assert list_records(new_database) == RECORDS


@pytest.fixture
def new_database(new_url: DatabaseUrlFactory) -> Iterator[Database]:
    database = open_database(new_url("sqlite"))
    yield database
    database.close()


def test_all_files_of_an_archive_are_imported(new_database: Database, tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    path.write_bytes(zip_members(("concept.json", TEXT), ("sub/task.json", json.dumps([build_term("c")]).encode())))
    assert dict(import_files(new_database, [path]).created) == {"concept": 2, "task": 1}
    path.write_bytes(zip_members(("concept.json", TEXT), ("task.json", b"[{]")))
    with pytest.raises(ImportRejected) as error:
        import_files(new_database, [path])
    assert error.value.problems[0].field == f"{path}, task.json, line 1, column 3"


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(TEXT)[:-20],
        gzip.compress(TEXT)[:20] + b"nonsense" * 20,
        bz2.compress(TEXT)[:-20],
        lzma.compress(TEXT)[:-20],
        zip_members(("concept.json", TEXT))[:-30],
        zip_members(("concept.json", TEXT)).replace(TEXT[:1], b"\0"),
        b"PK\x03\x04nonsense",
    ],
)
def test_a_damaged_file_is_rejected_with_a_clear_message(new_database: Database, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "concept.json.gz"
    path.write_bytes(data)
    with pytest.raises(ImportRejected) as error:
        import_files(new_database, [path])
    (problem,) = error.value.problems
    assert problem.field == str(path)
    assert "damaged" in problem.detail
    assert list_records(new_database) == []


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, lzma.compress, lambda data: zip_members(("a.json", data))]
)
def test_a_decompression_bomb_is_rejected_early(
    new_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Any
) -> None:
    monkeypatch.setattr(reading, "MIN_ALLOWED_BYTES", 1 << 20)
    path = tmp_path / "concept.json.gz"
    path.write_bytes(pack(b"[" + b" " * (300 << 20 if pack is gzip.compress else 30 << 20)))
    with pytest.raises(ImportRejected) as error:
        import_files(new_database, [path])
    assert "too large when decompressed" in error.value.problems[0].detail


def test_the_size_limit_applies_to_all_files_of_an_archive_together(
    new_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MIN_ALLOWED_BYTES", 1 << 20)
    path = tmp_path / "all.zip"
    path.write_bytes(zip_members(*((f"concept.{number}.json", b"[" + b" " * 900_000 + b"]") for number in range(9))))
    with pytest.raises(ImportRejected) as error:
        import_files(new_database, [path])
    assert "too large when decompressed" in error.value.problems[0].detail


def test_an_archive_of_too_many_files_is_rejected(new_database: Database, tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    path.write_bytes(zip_members(*((f"concept.{number}.json", b"[]") for number in range(1_001))))
    with pytest.raises(ImportRejected) as error:
        import_files(new_database, [path])
    assert error.value.problems[0].detail == "has 1,001 files; at most 1,000 are read from one archive."


def test_a_file_that_decompresses_beyond_the_limit_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_BYTES", 1_000)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"x" * 100_000))
    with pytest.raises(UnreadableFileError, match="too large when decompressed"):
        for part in open_documents(path):
            part.stream.read()


def decode_utf8(data: bytes, size: int = 7) -> tuple[bytes, str | None]:
    """Read a stream in small chunks."""
    text = Utf8Stream(io.BufferedReader(io.BytesIO(data)))
    return b"".join(iter(lambda: text.read(size) or b"", b"")), text.warning


def test_non_utf8_bytes_are_read_as_windows_1252_and_their_lines_reported() -> None:
    text = "é".encode() + b"\ncaf\xe9 \x93q\x94\n" + "語".encode() + b"\n\xe9\n"
    decoded_bytes, warning = decode_utf8(text)
    assert decoded_bytes.decode() == "é\ncafé “q”\n語\né\n"
    assert warning == "lines 2, 4 are not UTF-8; what is not was read as Windows-1252"
    assert decode_utf8("Ångström 語 😀\n".encode() * 50_000)[1] is None
    decoded_bytes, warning = decode_utf8("语é".encode() * 100_000 + b"\xe9")
    assert decoded_bytes.decode() == "语é" * 100_000 + "é"
    assert warning == "line 1 is not UTF-8; what is not was read as Windows-1252"


def test_only_the_first_of_many_lines_that_are_not_utf8_are_listed() -> None:
    _, warning = decode_utf8(b"\xe9\n" * 1_500)
    assert warning is not None
    assert warning.startswith("lines 1, 2, 3")
    assert "20 and 1,480 more are" in warning


def test_a_byte_that_is_valid_in_neither_encoding_is_reported_with_line_and_column() -> None:
    with pytest.raises(ParseError) as malformed:
        decode_utf8(b"one\ntwo \x81")
    assert (malformed.value.line, malformed.value.column) == (2, 5)
    with pytest.raises(ParseError):
        decode_utf8(b"\xff\xfe" + "text".encode("utf-16-le") + b"\x00\xd8")


@pytest.mark.parametrize("encoding", ["iso-8859-1", "utf-16", "utf-16-le", "utf-16-be"])
def test_an_xml_document_is_decoded_by_its_declared_encoding(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><a>\xe9</a>'
    assert decode_utf8(text.encode(encoding)) == (text.encode(), None)


def test_a_windows_1252_catalogue_is_imported_with_a_warning(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "concept.json"
    path.write_bytes(json.dumps([build_term("a", name="café")], ensure_ascii=False, indent=0).encode("windows-1252"))
    report = import_files(database, [path])
    assert "line 4 is not UTF-8" in report.warnings.items[0].detail
    assert list_records(database)[0]["name"] == "café"


@pytest.mark.parametrize(
    ("name", "head", "format"),
    [
        ("x.json", b"[{", "v-alpha"),
        ("x.json", b' {"@context": {}}', "jsonld"),
        ("x.json", b'{"id": 1}\n{"id": 2}', "jsonl"),
        ("x.JSONL", b"", "jsonl"),
        ("x.obo", b"", "obo"),
        ("x.csv", b"a;b", "csv"),
        ("x.tab", b"", "tsv"),
        ("x.owl", b"<rdf", "owl"),
        ("x", b'[{"id": "trm_a"}]', "v-alpha"),
        ("x", b'{"id": "trm_a", "name": "a"}', "v-alpha"),
        ("x", b'{"a": 1}\n\n{"a": 2}\n', "jsonl"),
        ("x.txt", b"format-version: 1.2\n[Term]\n", "obo"),
        ("x.txt", b"[Term]\nid: X:1\n", "obo"),
        ("x", b"! a comment\nformat-version: 1.2\n", "obo"),
        ("x", b"@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n", "skos"),
        ("x", b"# comment\nPREFIX skos: <x>\n", "skos"),
        ("x", b'<http://a> <http://b> "c"@en .\n', "ntriples"),
        ("x", b"_:b <http://b> <http://c> .\n", "ntriples"),
        ("x.txt", b"id\tname\n", "tsv"),
        ("x.txt", b"id;name\n", "csv"),
        ("x.xml", b'<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
                  b' xmlns:skos="http://www.w3.org/2004/02/skos/core#">', "rdfxml"),
        ("x.xml", b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><owl:Class', "owl"),
    ],
)  # fmt: skip
def test_the_format_is_detected_by_name_then_by_content(name: str, head: bytes, format: str) -> None:
    assert detect_format(name, head).name == format


@pytest.mark.parametrize("start", [b'<a> <b> "c', b"<a> <b> <c>", b"<a>", b"_:a", b"_:a <b>", b"_:a <b> _:c"])
def test_detecting_the_format_of_a_malicious_file_takes_linear_time(start: bytes) -> None:
    for filling in (b" ", b".", b". ", b" ."):
        with suppress(UnknownFormatError):
            detect_format("x", start + filling * 500_000 + b"x")


@pytest.mark.parametrize(("name", "head"), [("x", b""), ("x.txt", b"some words"), ("x.xml", b"<html>"), ("x", b"%PDF")])
def test_the_message_for_an_unknown_format_lists_the_supported_ones(name: str, head: bytes) -> None:
    with pytest.raises(UnknownFormatError) as unknown:
        detect_format(name, head)
    assert all(name in str(unknown.value) for name in FORMATS)


def test_an_unknown_format_is_reported_with_all_other_problems(database: Database, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some words")
    (tmp_path / "concept.json").write_text("[{]")
    with pytest.raises(ImportRejected) as error:
        import_files(database, [tmp_path / "a.txt", tmp_path / "concept.json"])
    assert [problem.field for problem in error.value.problems] == [
        str(tmp_path / "a.txt"),
        f"{tmp_path / 'concept.json'}, line 1, column 3",
    ]


def test_a_column_mapping_renames_keys(database: Database, tmp_path: Path) -> None:
    path = write_json(tmp_path / "concept.json", [{"id": "trm_a", "label": "A", "gloss": "What a is."}])
    (tmp_path / "map.txt").write_text("# what their names mean\ngloss = definition_text\n\n")
    import_files(database, [path], column_mapping=parse_mapping_options(["label=name", str(tmp_path / "map.txt")]))
    (record,) = list_records(database)
    assert (record["name"], record["definition_text"]) == ("A", "What a is.")


@pytest.mark.parametrize(
    ("name", "text"),
    [("concept.json", '[{"id": "trm_a", "name": "A", "junk": "x"}]'), ("concept.csv", "id,name,junk\ntrm_a,A,x\n")],
)
def test_a_column_without_a_meaning_is_skipped_without_a_warning(
    database: Database, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    report = run_import(database, ImportRequest([tmp_path / name], column_mapping=parse_mapping_options(["junk="])))
    assert report.created == {"concept": 1}
    assert all("junk" not in warning.detail for warning in report.warnings.items)
    with pytest.raises(InvalidInput, match="Invalid column mapping"):
        run_import(database, ImportRequest([tmp_path / name], column_mapping={"junk": "property"}))


def test_all_errors_in_a_column_mapping_are_reported_at_once(tmp_path: Path) -> None:
    file = tmp_path / "map.txt"
    file.write_text("a=name\nb=nonsense\n")
    with pytest.raises(InvalidInput) as invalid:
        parse_mapping_options([str(file), "must be COLUMN=FIELD", "=name", "a=alias", "http://x/?y=z=KINDOF"])
    assert [problem.field for problem in invalid.value.problems] == [
        f"{file}, line 2",
        "must be COLUMN=FIELD",
        "=name",
        "a=alias",
    ]
    assert parse_mapping_options(["http://x/?y=z=KINDOF"]) == {"http://x/?y=z": "KINDOF"}


def test_the_command_accepts_formats_column_mappings_and_preferences(tmp_path: Path) -> None:
    path = write_json(tmp_path / "odd.name", [{"id": "trm_a", "label": "A"}])
    database_url = f"sqlite:///{tmp_path}/a.db"
    options = (
        "--format",
        "v-alpha",
        "--collection",
        "concept",
        "--map",
        "label=name",
        "--database",
        database_url,
        "--json",
    )
    result = run_cli("import", path, *options, "--theirs")
    report = json.loads(result.stdout)
    assert report["created"] == {"concept": 1}
    assert {"retired", "refused", "conflicts", "conflict_count"} <= report.keys()
    assert run_cli("import", path, *options, "--theirs", "--ours").returncode == 1
    assert run_cli("import", path, "--format", "pdf", "--database", database_url).returncode == 2
    failed = run_cli("import", path, "--map", "=y", "--map", "z", "--database", database_url)
    assert (failed.returncode, failed.stderr.count("•")) == (1, 2)


FOREIGN_FILES = {
    "broken.zst": zstandard.compress(TEXT)[:-9],
    "twice.zip": zip_members(("concept.zip", zip_members(("concept.json", TEXT)))),
    "twice.gz": gzip.compress(gzip.compress(TEXT)),
    "all.7z": b"7z\xbc\xaf\x27\x1c" + b"\0" * 100,
    "all.tar.gz": gzip.compress(b"concept.json".ljust(257, b"\0") + b"ustar\0" + b"\0" * 500),
    "table.xlsx": zip_members(("[Content_Types].xml", b"<x/>"), ("xl/workbook.xml", b"<x/>")),
    "noise.json": b"\x81\x8d\x8f" * 50,
    "nothing.csv": b"",
    "nothing.jsonl": b"",
}


def test_every_unreadable_file_is_reported_with_its_reason(tmp_path: Path, new_url: DatabaseUrlFactory) -> None:
    database = open_database(new_url("sqlite"))
    paths = []
    for name, data in FOREIGN_FILES.items():
        paths.append(tmp_path / name)
        paths[-1].write_bytes(data)
    with pytest.raises(ImportRejected, match=f"^Nothing was imported: {len(FOREIGN_FILES)} problems") as caught:
        import_files(database, paths)
    problems_by_file = {
        problem.field.removeprefix(f"{tmp_path}/").split(",")[0]: problem.detail for problem in caught.value.problems
    }
    assert list(problems_by_file) == list(FOREIGN_FILES)
    assert "unpack it first" in problems_by_file["all.7z"]
    assert "tar archive" in problems_by_file["all.tar.gz"]
    assert "decompress it first" in problems_by_file["twice.zip"]
    assert problems_by_file["twice.gz"] == problems_by_file["twice.zip"]
    assert "save a table as CSV" in problems_by_file["table.xlsx"]
    database.close()


def test_other_files_in_an_archive_are_skipped(tmp_path: Path, new_url: DatabaseUrlFactory) -> None:
    database = open_database(new_url("sqlite"))
    path = tmp_path / "all.zip"
    path.write_bytes(
        zip_members(("README.txt", b"Read this, please"), ("concept.json", TEXT), ("logo.pdf", b"%PDF-1.4"))
    )
    report = import_files(database, [path])
    assert dict(report.created) == {"concept": 2}
    assert [note.field for note in report.warnings.items] == [f"{path}, README.txt", f"{path}, logo.pdf"]
    assert "skipped" in report.warnings.items[0].detail
    path.write_bytes(zip_members(("README.txt", b"Read this, please"), ("concept.csv", b"name\nthird\n")))
    assert dict(import_files(database, [path], format=FORMATS["csv"]).created) == {"concept": 1}
    path.write_bytes(zip_members(("README.txt", b"Read this"), ("LICENSE", b"All yours")))
    with pytest.raises(ImportRejected, match="2 problems"):
        import_files(database, [path])
    database.close()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("concept.json", b"[]"),
        ("concept.csv", b"id,name\n"),
        ("concept.obo", b"format-version: 1.4\n"),
        ("concept.jsonl", b'{"lexarium":"jsonl","format":1}\n'),
        ("concept.ttl", b"@prefix a: <http://a.example/> .\n"),
        ("concept.nt", b""),
    ],
)
def test_a_file_without_records_is_reported(
    tmp_path: Path, new_url: DatabaseUrlFactory, name: str, data: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    ran = run_cli("import", path, "--vocabulary", "main", "--database", new_url("sqlite"))
    assert ran.returncode == 0
    assert f"{path}: has no records" in ran.stderr.replace("\n", "")


def test_records_are_read_from_standard_input(tmp_path: Path, new_url: DatabaseUrlFactory) -> None:
    url = new_url("sqlite")
    options = ["--format", "csv", "--collection", "concept", "--database", url]
    for data, code in (
        (gzip.compress(b"name,definition\nfirst,One.\n"), 0),
        (zip_members(("a", TEXT)), 1),
        (b"x\n", 1),
    ):
        ran = run_cli_with_input(data, "import", *options, "-")
        assert ran.returncode == code, ran.stderr
        assert ("standard input" in ran.stderr) is bool(code)
    database = open_database(url)
    assert [record["name"] for record in list_records(database)] == ["first"]
    database.close()
