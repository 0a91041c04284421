"""Python client against real servers, and over faulty connections."""

import gzip
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pandas
import pytest

from lexarium.client import client as client_module
from lexarium.client import transport
from lexarium.client.client import Catalogue, NotFound, Refused, Stale
from lexarium.client.models import Record
from lexarium.client.transport import Unreachable
from lexarium.domain.errors import LexariumError
from lexarium.domain.schema.collections import COLLECTIONS
from tests.support.databases import DatabaseUrlFactory
from tests.support.fault_proxy import (
    FaultProxy,
    drop_connection,
    forward_then_drop,
    reply_with,
    send_endless_body,
    truncate_body,
)
from tests.support.server import Server

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "python-client.md"


@pytest.fixture(autouse=True)
def shorten_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_INITIAL_BACKOFF", 0.001)


@pytest.fixture
def catalogue(sqlite_sample: Server) -> Iterator[Catalogue]:
    with Catalogue(f"http://127.0.0.1:{sqlite_sample.port}/", sqlite_sample.create_token("curator")) as client:
        yield client


@pytest.fixture
def proxy(sqlite_sample: Server) -> Iterator[FaultProxy]:
    with FaultProxy(sqlite_sample.port) as fault_proxy:
        yield fault_proxy


@pytest.fixture
def proxied_catalogue(proxy: FaultProxy, sqlite_sample: Server) -> Iterator[Catalogue]:
    """Catalogue connected through the fault proxy."""
    with Catalogue(proxy.url, sqlite_sample.create_token("curator")) as client:
        yield client


def require_published(saved: object) -> Record:
    assert isinstance(saved, dict)
    assert saved["state"] == "published"
    record: Record = saved  # type: ignore[assignment]
    return record


# Reading


def test_a_list_iterates_over_all_pages(
    sqlite_sample: Server, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_PAGE_SIZE", 50)
    for name, records in (
        ("concept", catalogue.concepts()),
        ("task", catalogue.tasks()),
        ("disorder", catalogue.disorders()),
    ):
        entries = sqlite_sample.get(f"/api/v-alpha/{name}").json
        assert {record["id"] for record in records} == {record["id"] for record in entries}
        assert records.total == len(entries)


def test_filters_are_passed_to_the_service(catalogue: Catalogue) -> None:
    memory = list(catalogue.concepts(class_="ctp_memory", sort="-name"))
    assert memory
    assert {record["id_concept_class"] for record in memory} == {"ctp_memory"}
    assert memory[0]["name"].casefold() > memory[-1]["name"].casefold()
    sample_ids = [record["id"] for record in memory[:3]]
    assert {record["id"] for record in catalogue.concepts(ids=sample_ids)} == set(sample_ids)
    assert catalogue.disorders(flagged=True).total < catalogue.disorders().total
    with pytest.raises(Refused, match="colour is not a valid parameter") as error:
        list(catalogue.concepts(colour="red"))
    assert error.value.status == 422


def test_every_read_method_returns_the_data_of_the_service(catalogue: Catalogue) -> None:
    hit = catalogue.search("work mem", collection="concept", limit=3)[0]
    assert hit["name"] == "working memory"
    record = catalogue.get(hit["id"])
    assert record["aliases"][0]["text"] == "WM"
    assert catalogue.suggest("work mem", collection="concept", limit=1)[0]["id"] == record["id"]
    [mention] = catalogue.annotate("Working  memory é", collection="concept")
    assert (mention["start"], mention["end"], mention["id"]) == (0, 15, record["id"])
    for reference in (record, record["id"]):
        assert [item["name"] for item in catalogue.ancestors(reference)] == ["memory"]
        below = {item["name"]: item["depth"] for item in catalogue.descendants(reference)}
        assert below["phonological loop"] == 2
        assert [item["version"] for item in catalogue.history(reference)] == [1]
        related = {"id": record["relations"]["KINDOF"][0], "name": "memory", "vocabulary": "main"}
        assert {"relation": "KINDOF", "label": "kind of", "direction": "out", **related} in catalogue.relations(
            reference
        )
    assert catalogue.about()["counts"]["concept"] >= 100


def test_changes_are_complete_and_in_order(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAGE_SIZE", 100)
    revision = catalogue.about()["revision"]
    changes = list(catalogue.changes())
    # Those of vocabularies themselves are left out.
    assert [change["seq"] for change in changes] == sorted({change["seq"] for change in changes})
    assert {change["vocabulary"] for change in changes} == {"main", "settings"}
    assert changes[-1]["seq"] == revision
    require_published(catalogue.create("concept", name="What is new"))
    [change] = catalogue.changes(revision)
    assert change["record"]["name"] == "What is new"


def test_a_missing_record_raises_not_found_with_the_message_of_the_service(catalogue: Catalogue) -> None:
    with pytest.raises(NotFound, match="Record 'trm_nowhere' not found") as missing:
        catalogue.get("trm_nowhere")
    assert missing.value.status == 404


def test_past_states_are_read_by_revision(catalogue: Catalogue) -> None:
    record = require_published(catalogue.create("concept", name="Was"))
    revision = catalogue.about()["revision"]
    catalogue.update(record, name="Is")
    assert catalogue.get(record["id"], as_of=revision)["name"] == "Was"
    assert [record["name"] for record in catalogue.concepts(ids=[record["id"]], as_of=revision)] == ["Was"]


# Writing


def test_a_record_is_created_changed_related_and_retired(catalogue: Catalogue) -> None:
    created = require_published(
        catalogue.create("concept", name="Made", aliases=[{"text": "M", "lang": "en", "scope": "exact"}])
    )
    changed = require_published(catalogue.update(created, definition_text="What it is."))
    assert (changed["version"], changed["name"], changed["definition_text"]) == (2, "Made", "What it is.")
    parent = catalogue.search("memory", collection="concept")[0]["id"]
    assert catalogue.relate(changed, "KINDOF", parent)["relations"] == {"KINDOF": [parent]}
    assert catalogue.relate(created["id"], "exactMatch", "DOID:1")["relations"]["exactMatch"] == ["DOID:1"]
    assert catalogue.unrelate(created["id"], "KINDOF", parent)["relations"] == {"exactMatch": ["DOID:1"]}
    assert catalogue.retire(created["id"], replaced_by=parent)["state"] == "retired"
    with pytest.raises(NotFound) as error:
        catalogue.get(created["id"])
    assert error.value.problem["replaced_by"] == parent


def test_a_record_changed_meanwhile_is_not_overwritten(catalogue: Catalogue) -> None:
    record = require_published(catalogue.create("concept", name="Mine"))
    catalogue.update(record["id"], name="Theirs")
    with pytest.raises(Stale, match="is at version 2, not 1") as error:
        catalogue.update(record, name="Mine again")
    assert error.value.problem["record"]["name"] == "Theirs"
    assert require_published(catalogue.update(record["id"], definition_text="By its id."))["name"] == "Theirs"


def test_all_invalid_fields_are_reported(catalogue: Catalogue) -> None:
    with pytest.raises(Refused) as error:
        catalogue.create("concept", name="", colour="red")
    assert error.value.status == 422
    assert set(error.value.fields) == {"name", "colour"}
    assert error.value.fields["name"] in str(error.value)


def test_a_batch_is_all_or_nothing(catalogue: Catalogue) -> None:
    lines = [
        {"op": "create", "collection": "concept", "as": "x", "record": {"name": "Of a batch: ü"}},
        {"op": "update", "id": "$x", "change": {"definition_text": "…"}},
    ]
    results = catalogue.batch(lines)
    assert [result["version"] for result in results] == [1, 2]
    before = catalogue.about()["revision"]
    with pytest.raises(Refused):
        catalogue.batch([*lines, {"op": "retire", "id": "trm_nowhere"}])
    assert catalogue.about()["revision"] == before


def test_writes_of_a_contributor_become_proposals_that_a_curator_decides(
    sqlite_sample: Server, catalogue: Catalogue
) -> None:
    with Catalogue(f"http://127.0.0.1:{sqlite_sample.port}", sqlite_sample.create_token("contributor")) as contributor:
        first, second, third = (contributor.create("concept", name=name)["id"] for name in ("One", "Two", "Three"))
        assert contributor.propose("concept", {"name": "Four"})["state"] == "open"
        assert catalogue.accept(first)["name"] == "One"
        assert catalogue.accept(second, name="Two, mended")["name"] == "Two, mended"
        assert catalogue.reject(third, "Known already.")["reason"] == "Known already."
        [fourth] = contributor.proposals("open")
        assert contributor.withdraw(fourth["id"])["state"] == "withdrawn"
        assert len(contributor.proposals()) == 4


def test_writing_without_a_token_raises_the_message_of_the_service(sqlite_sample: Server) -> None:
    with Catalogue(f"http://127.0.0.1:{sqlite_sample.port}") as nobody, pytest.raises(Refused, match="Token") as error:
        nobody.create("concept", name="No")
    assert error.value.status == 401


# Faulty connections


def test_cached_responses_are_revalidated(proxy: FaultProxy, proxied_catalogue: Catalogue) -> None:
    first = list(proxied_catalogue.concepts())
    first[0]["name"] = "spoilt by the caller"
    assert next(iter(proxied_catalogue.concepts()))["name"] != "spoilt by the caller"
    assert [request.status for request in proxy.requests] == [200, 304]


def test_the_cache_size_is_limited(
    proxy: FaultProxy, proxied_catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_CACHE_BYTES", 20_000)
    sample_ids = [record["id"] for record in proxied_catalogue.concepts()][:30]
    for record_id in [*sample_ids, *sample_ids]:
        proxied_catalogue.get(record_id)
    statuses = [request.status for request in proxy.requests[1:]]
    assert statuses.count(304) < 30
    assert (
        sum(len(body) for _, body in proxied_catalogue._etag_cache.values())
        == proxied_catalogue._cached_bytes
        <= 20_000
    )


@pytest.mark.parametrize(
    "fault",
    [
        drop_connection,
        truncate_body,
        reply_with(503, b"busy", Retry_After="0"),
        reply_with(429, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
        reply_with(502),
        reply_with(200, b"not gzip", Content_Encoding="gzip"),
    ],
)
def test_reads_are_retried_after_transient_faults(
    proxy: FaultProxy, proxied_catalogue: Catalogue, fault: object
) -> None:
    proxy.faults.extend([fault, fault])  # type: ignore[list-item]
    assert proxied_catalogue.search("working memory")[0]["name"] == "working memory"
    assert len(proxy.requests) == 3


def test_a_write_whose_response_was_lost_is_not_repeated(
    proxy: FaultProxy, proxied_catalogue: Catalogue, catalogue: Catalogue
) -> None:
    before = catalogue.about()["revision"]
    proxy.faults.append(forward_then_drop)
    created = require_published(proxied_catalogue.create("concept", name="Once"))
    proxy.faults.append(forward_then_drop)
    changed = require_published(proxied_catalogue.update(created, name="Twice"))
    proxy.faults.append(forward_then_drop)
    related = proxied_catalogue.relate(changed, "exactMatch", "DOID:2")
    proxy.faults.append(forward_then_drop)
    assert proxied_catalogue.unrelate(related, "exactMatch", "DOID:2")["version"] == 4
    proxy.faults.extend([None, forward_then_drop])
    assert proxied_catalogue.retire(created["id"])["state"] == "retired"
    proxy.faults.append(forward_then_drop)
    proxied_catalogue.batch([{"op": "create", "collection": "concept", "record": {"name": "Batched"}}])
    assert catalogue.about()["revision"] == before + 6


def test_an_unreachable_service_raises_a_clear_error(proxy: FaultProxy, proxied_catalogue: Catalogue) -> None:
    proxy.default_fault = drop_connection
    with pytest.raises(Unreachable, match=r"http://127.0.0.1:\d+ cannot be reached: "):
        proxied_catalogue.about()
    assert len(proxy.requests) == 6
    proxy.default_fault = reply_with(503, b'{"detail": "Come again tomorrow."}', Retry_After="86400")
    with pytest.raises(Refused, match="Come again tomorrow") as error:
        proxied_catalogue.about()
    assert error.value.status == 503
    assert len(proxy.requests) == 7


@pytest.mark.parametrize("body", [b"<html>hello</html>", b'{"half": ', b"\xff", b"[" * 200_000])
def test_a_server_that_is_not_lexarium_is_reported(
    proxy: FaultProxy, proxied_catalogue: Catalogue, body: bytes
) -> None:
    proxy.default_fault = reply_with(200, body)
    with pytest.raises(Unreachable, match="not a Lexarium"):
        proxied_catalogue.about()
    proxy.default_fault = reply_with(418, body)
    with pytest.raises(Refused, match="The server responded with 418"):
        proxied_catalogue.about()


def test_an_endless_response_is_cut_off(proxy: FaultProxy, proxied_catalogue: Catalogue) -> None:
    proxy.default_fault = send_endless_body
    with pytest.raises(Unreachable, match="sent more than 67,108,864 bytes"):
        proxied_catalogue.about()


@pytest.mark.parametrize(
    "location",
    ["http://example.org/api/v1", "file:///etc/passwd", "https://user@127.0.0.1/", "//[", "ftp://127.0.0.1/"],
)
def test_a_redirect_to_another_host_is_not_followed(
    proxy: FaultProxy, proxied_catalogue: Catalogue, location: str
) -> None:
    proxy.default_fault = reply_with(302, Location=location)
    with pytest.raises(Unreachable, match=r"which is not followed|is not a URL"):
        proxied_catalogue.about()
    assert len(proxy.requests) == 1


def test_redirect_loops_are_detected(proxy: FaultProxy, proxied_catalogue: Catalogue) -> None:
    proxy.default_fault = reply_with(302, Location="/api/v1")
    with pytest.raises(Unreachable, match="too many redirects"):
        proxied_catalogue.about()


def test_a_permanent_redirect_is_remembered(proxy: FaultProxy, sqlite_sample: Server) -> None:
    server_url = f"http://127.0.0.1:{sqlite_sample.port}"
    proxy.default_fault = reply_with(301, Location=f"{server_url}/api/v1")
    with Catalogue(proxy.url) as proxied_catalogue:
        assert proxied_catalogue.about()["service"] == proxied_catalogue.about()["service"] == "lexarium"
        assert len(proxy.requests) == 1
        assert repr(proxied_catalogue) == f"Catalogue('{server_url}')"


@pytest.mark.parametrize(
    "url", ["example.org", "ftp://example.org", "http://", "http://[", "http://a b", "http://u:p@x"]
)
def test_an_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(LexariumError, match="is not a URL"):
        Catalogue(url)


# Tables and files


def test_records_are_converted_to_data_frames(catalogue: Catalogue) -> None:
    frame = catalogue.disorders().to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert set(frame["collection"]) == {"disorder"}
    assert {"id", "name", *COLLECTIONS["disorder"].core_fields} <= set(frame.columns)
    assert catalogue.search("memory", limit=3).to_frame()["name"][0] == "memory"


def test_a_data_frame_without_pandas_raises_a_clear_error(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(LexariumError, match="pip install pandas"):
        catalogue.concepts().to_frame()


def test_an_export_file_appears_only_when_complete(
    proxy: FaultProxy, proxied_catalogue: Catalogue, tmp_path: Path
) -> None:
    path = tmp_path / "out.ttl"
    proxy.default_fault = reply_with(406, json.dumps({"detail": "There is no such format."}).encode())
    with pytest.raises(Refused, match="no such format"):
        proxied_catalogue.export("nonsense", path)
    assert list(tmp_path.iterdir()) == []
    proxy.default_fault = reply_with(200, b"whole")
    assert proxied_catalogue.export("skos", path, collection="concept").read_bytes() == b"whole"
    assert [path.name for path in tmp_path.iterdir()] == ["out.ttl"]
    assert proxy.requests[-1].target == "/api/v1/export?format=skos&collection=concept"


def test_an_export_is_compressed_by_its_file_name_even_after_a_retry(
    proxy: FaultProxy, proxied_catalogue: Catalogue, tmp_path: Path
) -> None:
    proxy.faults.append(truncate_body)
    path = proxied_catalogue.export("csv", tmp_path / "out.csv.gz")
    assert gzip.decompress(path.read_bytes()) == proxied_catalogue.export("csv", tmp_path / "out.csv").read_bytes()
    with pytest.raises(LexariumError, match="would be an archive"):
        proxied_catalogue.export("csv", tmp_path / "out.csv.zip")


# Package and documentation


def test_the_client_does_not_import_server_modules() -> None:
    script = "import sys, lexarium.client; print(*sorted(name for name in sys.modules if name.startswith('lexarium')))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == [
        "lexarium",
        "lexarium.client",
        "lexarium.client.client",
        "lexarium.client.models",
        "lexarium.client.transport",
        "lexarium.compression",
        "lexarium.domain",
        "lexarium.domain.errors",
        "lexarium.domain.identifiers",
    ]


def test_the_examples_in_the_documentation_of_the_client_work(
    sample_url: DatabaseUrlFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the code blocks in order on a fresh sample; the output of each is the block that follows it."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```(python|text)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    printed = ""
    with Server(sample_url("sqlite")) as server:
        for kind, text in blocks:
            if kind == "text":
                assert printed == text
                printed = ""
                continue
            assert printed == "", "what a block prints is not shown"
            code = text.replace("http://127.0.0.1:8000", f"http://127.0.0.1:{server.port}")
            code = code.replace('"YOUR-TOKEN"', repr(server.create_token("curator")))
            with redirect_stdout(io.StringIO()) as output:
                exec(compile(code, str(PAGE), "exec"), names)
            printed = output.getvalue().replace(f":{server.port}", ":8000")
    assert printed == ""
    assert len(blocks) >= 20
