"""The Python client, over HTTP to real servers; and what it does where the way to them is bad."""

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

from lexarium import client as client_module
from lexarium import transport
from lexarium.answers import Record
from lexarium.client import Catalogue, NotFound, Refused, Stale
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import LexariumError
from lexarium.transport import Unreachable
from tests.databases import NewUrl
from tests.go_between import GoBetween, answering, done_and_dropped, dropped, endless, halved
from tests.server import Server

PAGE = Path(__file__).parents[1] / "docs" / "client.md"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_FIRST_PAUSE", 0.001)


@pytest.fixture(scope="module")
def sample(new_url: NewUrl) -> Iterator[Server]:
    with Server(new_url("sqlite"), "--sample") as running:
        yield running


@pytest.fixture
def catalogue(sample: Server) -> Iterator[Catalogue]:
    with Catalogue(f"http://127.0.0.1:{sample.port}/", sample.token("curator")) as opened:
        yield opened


@pytest.fixture
def between(sample: Server) -> Iterator[GoBetween]:
    with GoBetween(sample.port) as running:
        yield running


@pytest.fixture
def far(between: GoBetween, sample: Server) -> Iterator[Catalogue]:
    """A catalogue whose connection goes through the go-between."""
    with Catalogue(between.url, sample.token("curator")) as opened:
        yield opened


def published(made: object) -> Record:
    assert isinstance(made, dict)
    assert made["state"] == "published"
    record: Record = made  # type: ignore[assignment]
    return record


# Reading


def test_a_list_is_every_record_page_by_page(
    sample: Server, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_PAGE", 50)
    for name, records in (
        ("concept", catalogue.concepts()),
        ("task", catalogue.tasks()),
        ("disorder", catalogue.disorders()),
    ):
        listed = sample.get(f"/api/v-alpha/{name}").json
        assert {record["id"] for record in records} == {record["id"] for record in listed}
        assert records.total == len(listed)


def test_filters_are_those_of_the_service(catalogue: Catalogue) -> None:
    memory = list(catalogue.concepts(class_="ctp_memory", sort="-name"))
    assert memory
    assert {record["id_concept_class"] for record in memory} == {"ctp_memory"}
    assert memory[0]["name"].casefold() > memory[-1]["name"].casefold()
    some = [record["id"] for record in memory[:3]]
    assert {record["id"] for record in catalogue.concepts(ids=some)} == set(some)
    assert catalogue.disorders(flagged=True).total < catalogue.disorders().total
    with pytest.raises(Refused, match="colour is not a parameter here") as refused:
        list(catalogue.concepts(colour="red"))
    assert refused.value.status == 422


def test_every_way_to_read_gives_what_the_service_has(catalogue: Catalogue) -> None:
    hit = catalogue.search("work mem", collection="concept", limit=3)[0]
    assert hit["name"] == "working memory"
    record = catalogue.get(hit["id"])
    assert record["aliases"][0]["text"] == "WM"
    assert catalogue.suggest("work mem", collection="concept", limit=1)[0]["id"] == record["id"]
    [mention] = catalogue.annotate("Working  memory é", collection="concept")
    assert (mention["start"], mention["end"], mention["id"]) == (0, 15, record["id"])
    for given in (record, record["id"]):
        assert [each["name"] for each in catalogue.ancestors(given)] == ["memory"]
        below = {each["name"]: each["depth"] for each in catalogue.descendants(given)}
        assert below["phonological loop"] == 2
        assert [each["version"] for each in catalogue.history(given)] == [1]
        assert {"relation": "KINDOF", "direction": "out", "id": record["relations"]["KINDOF"][0], "name": "memory"} in (
            catalogue.relations(given)
        )
    assert catalogue.about()["counts"]["concept"] >= 100


def test_changes_are_every_change_in_order(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAGE", 100)
    revision = catalogue.about()["revision"]
    changes = list(catalogue.changes())
    assert [change["seq"] for change in changes] == list(range(1, revision + 1))
    published(catalogue.create("concept", name="What is new"))
    [change] = catalogue.changes(revision)
    assert change["record"]["name"] == "What is new"


def test_a_record_that_is_not_there_is_told_with_the_services_sentence(catalogue: Catalogue) -> None:
    with pytest.raises(NotFound, match="There is no record with the id 'trm_nowhere'") as missing:
        catalogue.get("trm_nowhere")
    assert missing.value.status == 404


def test_the_past_is_read_by_revision(catalogue: Catalogue) -> None:
    record = published(catalogue.create("concept", name="Was"))
    revision = catalogue.about()["revision"]
    catalogue.update(record, name="Is")
    assert catalogue.get(record["id"], as_of=revision)["name"] == "Was"
    assert [each["name"] for each in catalogue.concepts(ids=[record["id"]], as_of=revision)] == ["Was"]


# Writing


def test_a_record_is_made_changed_related_and_retired(catalogue: Catalogue) -> None:
    made = published(catalogue.create("concept", name="Made", aliases=[{"text": "M", "lang": "en", "scope": "exact"}]))
    changed = published(catalogue.update(made, definition_text="What it is."))
    assert (changed["version"], changed["name"], changed["definition_text"]) == (2, "Made", "What it is.")
    parent = catalogue.search("memory", collection="concept")[0]["id"]
    assert catalogue.relate(changed, "KINDOF", parent)["relations"] == {"KINDOF": [parent]}
    assert catalogue.relate(made["id"], "exactMatch", "DOID:1")["relations"]["exactMatch"] == ["DOID:1"]
    assert catalogue.unrelate(made["id"], "KINDOF", parent)["relations"] == {"exactMatch": ["DOID:1"]}
    assert catalogue.retire(made["id"], replaced_by=parent)["state"] == "retired"
    with pytest.raises(NotFound) as gone:
        catalogue.get(made["id"])
    assert gone.value.problem["replaced_by"] == parent


def test_a_record_that_was_changed_meanwhile_is_not_overwritten(catalogue: Catalogue) -> None:
    read = published(catalogue.create("concept", name="Mine"))
    catalogue.update(read["id"], name="Theirs")
    with pytest.raises(Stale, match="is at version 2 now, not at 1") as stale:
        catalogue.update(read, name="Mine again")
    assert stale.value.problem["record"]["name"] == "Theirs"
    assert published(catalogue.update(read["id"], definition_text="By its id."))["name"] == "Theirs"


def test_every_wrong_field_is_told(catalogue: Catalogue) -> None:
    with pytest.raises(Refused) as refused:
        catalogue.create("concept", name="", colour="red")
    assert refused.value.status == 422
    assert set(refused.value.fields) == {"name", "colour"}
    assert refused.value.fields["name"] in str(refused.value)


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


def test_a_contributors_writes_are_proposals_that_a_curator_decides(sample: Server, catalogue: Catalogue) -> None:
    with Catalogue(f"http://127.0.0.1:{sample.port}", sample.token("contributor")) as mine:
        first, second, third = (mine.create("concept", name=name)["id"] for name in ("One", "Two", "Three"))
        assert mine.propose("concept", {"name": "Four"})["state"] == "open"
        assert catalogue.accept(first)["name"] == "One"
        assert catalogue.accept(second, name="Two, mended")["name"] == "Two, mended"
        assert catalogue.reject(third, "Known already.")["reason"] == "Known already."
        [fourth] = mine.proposals("open")
        assert mine.withdraw(fourth["id"])["state"] == "withdrawn"
        assert len(mine.proposals()) == 4


def test_writing_without_a_token_is_refused_in_the_services_words(sample: Server) -> None:
    with Catalogue(f"http://127.0.0.1:{sample.port}") as nobody, pytest.raises(Refused, match="token") as refused:
        nobody.create("concept", name="No")
    assert refused.value.status == 401


# A bad connection


def test_what_is_known_already_is_not_sent_again(between: GoBetween, far: Catalogue) -> None:
    first = list(far.concepts())
    first[0]["name"] = "spoilt by the caller"
    assert next(iter(far.concepts()))["name"] != "spoilt by the caller"
    assert [each.status for each in between.asked] == [200, 304]


def test_what_is_kept_is_bounded(between: GoBetween, far: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_CACHE_BYTES", 20_000)
    some = [record["id"] for record in far.concepts()][:30]
    for identifier in [*some, *some]:
        far.get(identifier)
    statuses = [each.status for each in between.asked[1:]]
    assert statuses.count(304) < 30
    assert sum(len(body) for _, body in far._kept.values()) == far._kept_bytes <= 20_000


@pytest.mark.parametrize(
    "trouble",
    [
        dropped,
        halved,
        answering(503, b"busy", Retry_After="0"),
        answering(429, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
        answering(502),
        answering(200, b"not gzip", Content_Encoding="gzip"),
    ],
)
def test_a_read_outlives_trouble(between: GoBetween, far: Catalogue, trouble: object) -> None:
    between.faults.extend([trouble, trouble])  # type: ignore[list-item]
    assert far.search("working memory")[0]["name"] == "working memory"
    assert len(between.asked) == 3


def test_a_write_whose_answer_was_lost_is_done_once(between: GoBetween, far: Catalogue, catalogue: Catalogue) -> None:
    before = catalogue.about()["revision"]
    between.faults.append(done_and_dropped)
    made = published(far.create("concept", name="Once"))
    between.faults.append(done_and_dropped)
    changed = published(far.update(made, name="Twice"))
    between.faults.append(done_and_dropped)
    related = far.relate(changed, "exactMatch", "DOID:2")
    between.faults.append(done_and_dropped)
    assert far.unrelate(related, "exactMatch", "DOID:2")["version"] == 4
    between.faults.extend([None, done_and_dropped])
    assert far.retire(made["id"])["state"] == "retired"
    between.faults.append(done_and_dropped)
    far.batch([{"op": "create", "collection": "concept", "record": {"name": "Batched"}}])
    assert catalogue.about()["revision"] == before + 6


def test_a_service_that_stays_away_is_told_in_a_sentence(between: GoBetween, far: Catalogue) -> None:
    between.every = dropped
    with pytest.raises(Unreachable, match=r"http://127.0.0.1:\d+ cannot be reached: "):
        far.about()
    assert len(between.asked) == 6
    between.every = answering(503, b'{"detail": "Come again tomorrow."}', Retry_After="86400")
    with pytest.raises(Refused, match="Come again tomorrow") as refused:
        far.about()
    assert refused.value.status == 503
    assert len(between.asked) == 7


@pytest.mark.parametrize("body", [b"<html>hello</html>", b'{"half": ', b"\xff", b"[" * 200_000])
def test_what_is_no_lexarium_is_told_so(between: GoBetween, far: Catalogue, body: bytes) -> None:
    between.every = answering(200, body)
    with pytest.raises(Unreachable, match="no Lexarium"):
        far.about()
    between.every = answering(418, body)
    with pytest.raises(Refused, match="The service answered 418"):
        far.about()


def test_an_answer_without_end_is_cut_off(between: GoBetween, far: Catalogue) -> None:
    between.every = endless
    with pytest.raises(Unreachable, match="answers more than 67,108,864 bytes"):
        far.about()


@pytest.mark.parametrize(
    "location",
    ["http://example.org/api/v1", "file:///etc/passwd", "https://user@127.0.0.1/", "//[", "ftp://127.0.0.1/"],
)
def test_a_redirect_to_someone_else_is_not_followed(between: GoBetween, far: Catalogue, location: str) -> None:
    between.every = answering(302, Location=location)
    with pytest.raises(Unreachable, match=r"which is not followed|is not an address"):
        far.about()
    assert len(between.asked) == 1


def test_redirects_end(between: GoBetween, far: Catalogue) -> None:
    between.every = answering(302, Location="/api/v1")
    with pytest.raises(Unreachable, match="without end"):
        far.about()


def test_a_server_that_has_moved_is_asked_there_from_then_on(between: GoBetween, sample: Server) -> None:
    there = f"http://127.0.0.1:{sample.port}"
    between.every = answering(301, Location=f"{there}/api/v1")
    with Catalogue(between.url) as far:
        assert far.about()["service"] == far.about()["service"] == "lexarium"
        assert len(between.asked) == 1
        assert repr(far) == f"Catalogue('{there}')"


@pytest.mark.parametrize(
    "address", ["example.org", "ftp://example.org", "http://", "http://[", "http://a b", "http://u:p@x"]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(LexariumError, match="is not an address"):
        Catalogue(address)


# Tables and files


def test_rows_become_frames(catalogue: Catalogue) -> None:
    frame = catalogue.disorders().to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert set(frame["collection"]) == {"disorder"}
    assert {"id", "name", *COLLECTIONS["disorder"].fields} <= set(frame.columns)
    assert catalogue.search("memory", limit=3).to_frame()["name"][0] == "memory"


def test_without_pandas_a_frame_is_refused_in_a_sentence(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(LexariumError, match="pip install pandas"):
        catalogue.concepts().to_frame()


def test_an_export_is_there_only_once_it_is_whole(between: GoBetween, far: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "out.ttl"
    between.every = answering(406, json.dumps({"detail": "There is no such format."}).encode())
    with pytest.raises(Refused, match="no such format"):
        far.export("nonsense", path)
    assert list(tmp_path.iterdir()) == []
    between.every = answering(200, b"whole")
    assert far.export("skos", path, collection="concept").read_bytes() == b"whole"
    assert [each.name for each in tmp_path.iterdir()] == ["out.ttl"]
    assert between.asked[-1].target == "/api/v1/export?format=skos&collection=concept"


def test_an_export_is_compressed_as_its_name_ends_also_where_it_took_two_tries(
    between: GoBetween, far: Catalogue, tmp_path: Path
) -> None:
    between.faults.append(halved)
    path = far.export("csv", tmp_path / "out.csv.gz")
    assert gzip.decompress(path.read_bytes()) == far.export("csv", tmp_path / "out.csv").read_bytes()
    with pytest.raises(LexariumError, match="would be an archive"):
        far.export("csv", tmp_path / "out.csv.zip")


# The package and the page


def test_the_client_loads_nothing_of_the_server() -> None:
    script = "import sys, lexarium.client; print(*sorted(name for name in sys.modules if name.startswith('lexarium')))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == [
        "lexarium",
        "lexarium.answers",
        "lexarium.client",
        "lexarium.domain",
        "lexarium.domain.compression",
        "lexarium.domain.errors",
        "lexarium.transport",
    ]


def test_the_page_of_the_client_is_so(new_url: NewUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks run in order against a fresh sample; what each prints is the block that follows it."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```(python|text)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    printed = ""
    with Server(new_url("sqlite"), "--sample") as server:
        for kind, text in blocks:
            if kind == "text":
                assert printed == text
                printed = ""
                continue
            assert printed == "", "what a block prints is not shown"
            code = text.replace("http://127.0.0.1:8000", f"http://127.0.0.1:{server.port}")
            code = code.replace('"YOUR-TOKEN"', repr(server.token("curator")))
            with redirect_stdout(io.StringIO()) as output:
                exec(compile(code, str(PAGE), "exec"), names)
            printed = output.getvalue().replace(f":{server.port}", ":8000")
    assert printed == ""
    assert len(blocks) >= 20
