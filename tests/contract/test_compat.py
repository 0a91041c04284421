"""Public clients, unchanged except for the host, against a server of the sample."""

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
from tests.support.requirements import skip_or_fail
from tests.support.server import Server

MEMORY = "trm_606958d85e21c"
READS = {"concept": get_concept, "task": get_task, "disorder": get_disorder}


@pytest.fixture
def redirected_url(sqlite_sample: Server) -> Iterator[str]:
    base_url = f"http://127.0.0.1:{sqlite_sample.port}"
    with redirect_cognitiveatlas(base_url + "/"):
        yield base_url


def list_records(sqlite_sample: Server, collection: str) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = sqlite_sample.get(f"/api/v-alpha/{collection}").json
    return records


@pytest.mark.parametrize("collection", READS)
def test_a_collection_is_returned_completely_without_arguments(
    sqlite_sample: Server, redirected_url: str, collection: str
) -> None:
    response = READS[collection](silent=True)
    assert response.json == list_records(sqlite_sample, collection)
    assert list(response.pandas["id"]) == [record["id"] for record in response.json]
    assert json.loads(response.txt) == response.json
    assert response.url == f"{redirected_url}/api/v-alpha/{collection}"


@pytest.mark.parametrize("collection", READS)
def test_every_record_is_found_by_id_and_by_name(sqlite_sample: Server, redirected_url: str, collection: str) -> None:
    records = list_records(sqlite_sample, collection)
    lowest: dict[str, str] = {}
    for record in sorted(records, key=lambda item: str(item["id"]), reverse=True):
        lowest[record["name"]] = record["id"]
    for record in records[::5]:
        by_id = READS[collection](id=record["id"], silent=True).json
        assert {name: by_id[name] for name in record} == record
        assert by_id["type"] == collection
        by_name = READS[collection](name=record["name"], silent=True).json
        assert by_name["id"] == lowest[record["name"]]
        assert READS[collection](id=record["id"], name="something else", silent=True).json == by_id


def test_non_ascii_names_are_found(redirected_url: str) -> None:
    assert get_disorder(name="Bálint's syndrome", silent=True).json["name"] == "Bálint's syndrome"
    assert search("Arbeitsgedächtnis", silent=True).json[0]["id"] == MEMORY


def test_concepts_are_filtered_by_contrast(sqlite_sample: Server, redirected_url: str) -> None:
    record = sqlite_sample.get(f"/api/v1/concept/{MEMORY}").json
    for contrast in record["relations"]["MEASUREDBY"]:
        assert MEMORY in [record["id"] for record in get_concept(contrast_id=contrast, silent=True).json]
    assert get_concept(contrast_id="cnt_nowhere", silent=True).json == []


def test_search_results_keep_their_order(sqlite_sample: Server, redirected_url: str) -> None:
    response = search("working memory", silent=True)
    assert response.json == sqlite_sample.get("/api/v-alpha/search?q=working%20memory").json
    assert response.json[0]["id"] == MEMORY
    assert response.pandas["name"][0] == "working memory"
    assert search("qqqqqqqq", silent=True).json == []


def test_the_request_url_is_printed_unless_silent(redirected_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    get_concept(id=MEMORY)
    search("working memory")
    printed = capsys.readouterr().out
    assert f"{redirected_url}/api/v-alpha/concept?id={MEMORY}" in printed
    assert f"{redirected_url}/api/v-alpha/search?q=working%20memory" in printed
    get_task(silent=True)
    assert capsys.readouterr().out == ""


def test_functions_built_on_the_api_calls_work(sqlite_sample: Server, redirected_url: str, tmp_path: Path) -> None:
    assert filter_concepts() == list_records(sqlite_sample, "concept")
    contrast = sqlite_sample.get(f"/api/v1/concept/{MEMORY}").json["relations"]["MEASUREDBY"][0]
    assert MEMORY in [item["id"] for item in filter_concepts(contrast_id=contrast)]
    nodes = datastructure.concept_node_triples(
        image_dict={contrast: ["image.nii.gz"]}, output_file=str(tmp_path / "nodes.tsv")
    )
    assert MEMORY in set(nodes[nodes["name"] == "image.nii.gz"]["parent"])
    assert set(datastructure.get_concept_categories()) == {
        item["id"] for item in list_records(sqlite_sample, "concept")
    }


def test_a_redirection_can_be_undone(sqlite_sample: Server) -> None:
    before = api.DataJson
    with redirect_cognitiveatlas(f"http://127.0.0.1:{sqlite_sample.port}"):
        assert api.DataJson is not before
    assert api.DataJson is before
    redirection = redirect_cognitiveatlas(f"http://127.0.0.1:{sqlite_sample.port}")
    assert get_concept(id=MEMORY, silent=True).json["id"] == MEMORY
    redirection.undo()
    assert api.DataJson is before


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://example.org"])
def test_an_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(LexariumError, match="is not a URL"):
        redirect_cognitiveatlas(url)


def test_a_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cognitiveatlas.api", None)
    with pytest.raises(LexariumError, match="pip install cognitiveatlas"):
        redirect_cognitiveatlas("http://127.0.0.1:8000")


def test_all_fields_that_nimare_reads_exist(sqlite_sample: Server, redirected_url: str) -> None:
    """NiMARE's `download_cognitive_atlas` makes these calls in this order and reads these fields."""
    frames = {name: READS[name](silent=True).pandas for name in READS}
    for name in ("concept", "task"):
        assert not frames[name][["id", "name", "alias"]].isna().any(axis=None)
    assert frames["disorder"]["name"].str.lower().notna().all()
    assert set(frames["concept"]["id_concept_class"]) >= {"ctp_memory"}
    relations = set()
    for record_id in frames["concept"]["id"].unique():
        for related in get_concept(id=record_id, silent=True).json["relationships"]:
            relations.add((record_id, related["relationship"], related["direction"], related["id"]))
    for record_id in frames["task"]["id"].unique():
        for related in get_task(id=record_id, silent=True).json["concepts"]:
            relations.add((record_id, "ASSERTS", "", related["concept_id"]))
    for record_id in frames["disorder"]["id"].unique():
        for related in get_disorder(id=record_id, silent=True).json["disorders"]:
            relations.add((record_id, related["relationship"], "", related["id"]))
    assert relations == list_relations(sqlite_sample)


def list_relations(sqlite_sample: Server) -> set[tuple[str, str, str, str]]:
    """Return the catalogue's relations from v1 as NiMARE sees them: a concept lists both directions."""
    relations = set()
    for name in READS:
        for record in sqlite_sample.get(f"/api/v1/{name}?limit=1000").json["items"]:
            for relation, targets in record["relations"].items():
                for target in targets:
                    if relation in ("KINDOF", "PARTOF"):
                        relations |= {
                            (record["id"], relation, "parent", target),
                            (target, relation, "child", record["id"]),
                        }
                    elif relation in ("ASSERTS", "ISA"):
                        relations.add((record["id"], relation, "", target))
    return relations


# NiMARE has its own environment because it needs a gigabyte of other packages.
NIMARE = Path(__file__).parents[2] / ".venv-nimare" / "bin" / "python"
DOWNLOAD = """
import json, sys, time
from lexarium.compat import redirect_cognitiveatlas
from nimare.extract import download_cognitive_atlas
time.sleep = lambda seconds: None
redirect_cognitiveatlas(sys.argv[1])
print(json.dumps(download_cognitive_atlas(data_dir=sys.argv[2])))
"""


@pytest.mark.full
def test_the_download_function_of_nimare_works(sqlite_sample: Server, tmp_path: Path) -> None:
    if not NIMARE.exists():
        skip_or_fail("no NiMARE (make .venv-nimare/ready)")
    environment = {**os.environ, "PYTHONPATH": str(Path(lexarium.__file__).parents[1])}
    command = [str(NIMARE), "-c", DOWNLOAD, f"http://127.0.0.1:{sqlite_sample.port}", str(tmp_path)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    files = json.loads(result.stdout.splitlines()[-1])
    assert "working memory" in Path(files["ids"]).read_text()
    assert f"{MEMORY},{MEMORY},isSelf" in Path(files["relationships"]).read_text()
