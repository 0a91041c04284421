"""The public clients, unchanged but for the host, over HTTP to a real server of the sample."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cognitiveatlas import api, datastructure
from cognitiveatlas.api import filter_concepts, get_concept, get_disorder, get_task, search

import lexarium
from lexarium.compat import redirect_cognitiveatlas
from lexarium.domain.errors import LexariumError
from tests.databases import NewUrl
from tests.lacking import skip
from tests.server import Server

MEMORY = "trm_606958d85e21c"
READS = {"concept": get_concept, "task": get_task, "disorder": get_disorder}


@pytest.fixture(scope="module")
def sample(new_url: NewUrl) -> Iterator[Server]:
    with Server(new_url("sqlite"), "--sample") as running:
        yield running


@pytest.fixture
def redirected(sample: Server) -> Iterator[str]:
    base = f"http://127.0.0.1:{sample.port}"
    with redirect_cognitiveatlas(base + "/"):
        yield base


def listed(sample: Server, collection: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sample.get(f"/api/v-alpha/{collection}").json
    return found


@pytest.mark.parametrize("collection", READS)
def test_without_arguments_a_collection_comes_whole(sample: Server, redirected: str, collection: str) -> None:
    answer = READS[collection](silent=True)
    assert answer.json == listed(sample, collection)
    assert list(answer.pandas["id"]) == [record["id"] for record in answer.json]
    assert json.loads(answer.txt) == answer.json
    assert answer.url == f"{redirected}/api/v-alpha/{collection}"


@pytest.mark.parametrize("collection", READS)
def test_every_record_comes_by_its_id_and_by_its_name(sample: Server, redirected: str, collection: str) -> None:
    records = listed(sample, collection)
    lowest: dict[str, str] = {}
    for record in sorted(records, key=lambda each: str(each["id"]), reverse=True):
        lowest[record["name"]] = record["id"]
    for record in records[::5]:
        by_id = READS[collection](id=record["id"], silent=True).json
        assert {name: by_id[name] for name in record} == record
        assert by_id["type"] == collection
        by_name = READS[collection](name=record["name"], silent=True).json
        assert by_name["id"] == lowest[record["name"]]
        assert READS[collection](id=record["id"], name="something else", silent=True).json == by_id


def test_names_that_are_not_ascii_are_found(redirected: str) -> None:
    assert get_disorder(name="Bálint's syndrome", silent=True).json["name"] == "Bálint's syndrome"
    assert any("gedächtnis" in hit["alias"] for hit in search("Arbeitsgedächtnis", silent=True).json)


def test_concepts_come_by_contrast(sample: Server, redirected: str) -> None:
    record = sample.get(f"/api/v1/concept/{MEMORY}").json
    for contrast in record["relations"]["MEASUREDBY"]:
        assert MEMORY in [each["id"] for each in get_concept(contrast_id=contrast, silent=True).json]
    assert get_concept(contrast_id="cnt_nowhere", silent=True).json == []


def test_search_finds_in_order(sample: Server, redirected: str) -> None:
    answer = search("working memory", silent=True)
    assert answer.json == sample.get("/api/v-alpha/search?q=working%20memory").json
    assert answer.json[0]["id"] == MEMORY
    assert answer.pandas["name"][0] == "working memory"
    assert search("qqqqqqqq", silent=True).json == []


def test_unless_silent_it_prints_where_it_reads(redirected: str, capsys: pytest.CaptureFixture[str]) -> None:
    get_concept(id=MEMORY)
    search("working memory")
    printed = capsys.readouterr().out
    assert f"{redirected}/api/v-alpha/concept?id={MEMORY}" in printed
    assert f"{redirected}/api/v-alpha/search?q=working%20memory" in printed
    get_task(silent=True)
    assert capsys.readouterr().out == ""


def test_what_is_built_on_its_calls_works_too(sample: Server, redirected: str, tmp_path: Path) -> None:
    assert filter_concepts() == listed(sample, "concept")
    contrast = sample.get(f"/api/v1/concept/{MEMORY}").json["relations"]["MEASUREDBY"][0]
    assert MEMORY in [each["id"] for each in filter_concepts(contrast_id=contrast)]
    nodes = datastructure.concept_node_triples(
        image_dict={contrast: ["image.nii.gz"]}, output_file=str(tmp_path / "nodes.tsv")
    )
    assert MEMORY in set(nodes[nodes["name"] == "image.nii.gz"]["parent"])
    assert set(datastructure.get_concept_categories()) == {each["id"] for each in listed(sample, "concept")}


def test_a_redirection_is_undone(sample: Server) -> None:
    before = api.DataJson
    with redirect_cognitiveatlas(f"http://127.0.0.1:{sample.port}"):
        assert api.DataJson is not before
    assert api.DataJson is before
    redirection = redirect_cognitiveatlas(f"http://127.0.0.1:{sample.port}")
    assert get_concept(id=MEMORY, silent=True).json["id"] == MEMORY
    redirection.undo()
    assert api.DataJson is before


@pytest.mark.parametrize("address", ["", "localhost:8000", "ftp://example.org"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(LexariumError, match="is not an address"):
        redirect_cognitiveatlas(address)


def test_without_the_package_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cognitiveatlas.api", None)
    with pytest.raises(LexariumError, match="pip install cognitiveatlas"):
        redirect_cognitiveatlas("http://127.0.0.1:8000")


def test_all_that_nimare_reads_is_there(sample: Server, redirected: str) -> None:
    """Its `download_cognitive_atlas` makes these calls in this order, and takes these fields of their answers."""
    frames = {name: READS[name](silent=True).pandas for name in READS}
    for name in ("concept", "task"):
        assert not frames[name][["id", "name", "alias"]].isna().any(axis=None)
    assert frames["disorder"]["name"].str.lower().notna().all()
    assert set(frames["concept"]["id_concept_class"]) >= {"ctp_memory"}
    relations = set()
    for identifier in frames["concept"]["id"].unique():
        for each in get_concept(id=identifier, silent=True).json["relationships"]:
            relations.add((identifier, each["relationship"], each["direction"], each["id"]))
    for identifier in frames["task"]["id"].unique():
        for each in get_task(id=identifier, silent=True).json["concepts"]:
            relations.add((identifier, "ASSERTS", "", each["concept_id"]))
    for identifier in frames["disorder"]["id"].unique():
        for each in get_disorder(id=identifier, silent=True).json["disorders"]:
            relations.add((identifier, each["relationship"], "", each["id"]))
    assert relations == edges(sample)


def edges(sample: Server) -> set[tuple[str, str, str, str]]:
    """The relations of the catalogue as v1 tells them, in NiMARE's view: a concept tells them in both directions."""
    found = set()
    for name in READS:
        for record in sample.get(f"/api/v1/{name}?limit=1000").json["items"]:
            for relation, targets in record["relations"].items():
                for target in targets:
                    if relation in ("KINDOF", "PARTOF"):
                        found |= {(record["id"], relation, "parent", target), (target, relation, "child", record["id"])}
                    elif relation in ("ASSERTS", "ISA"):
                        found.add((record["id"], relation, "", target))
    return found


NIMARE = Path(__file__).parents[1] / ".venv-nimare" / "bin" / "python"
"""NiMARE has an environment of its own: it brings a gigabyte of other packages."""
DOWNLOAD = """
import json, sys, time
from lexarium.compat import redirect_cognitiveatlas
from nimare.extract import download_cognitive_atlas
time.sleep = lambda seconds: None
redirect_cognitiveatlas(sys.argv[1])
print(json.dumps(download_cognitive_atlas(data_dir=sys.argv[2])))
"""


@pytest.mark.full
def test_nimares_own_download_works(sample: Server, tmp_path: Path) -> None:
    if not NIMARE.exists():
        skip("no NiMARE (make .venv-nimare/ready)")
    environment = {**os.environ, "PYTHONPATH": str(Path(lexarium.__file__).parents[1])}
    command = [str(NIMARE), "-c", DOWNLOAD, f"http://127.0.0.1:{sample.port}", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout.splitlines()[-1])
    assert "working memory" in Path(files["ids"]).read_text()
    assert f"{MEMORY},{MEMORY},isSelf" in Path(files["relationships"]).read_text()
