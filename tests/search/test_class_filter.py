"""Search filtered by the class of records, in any vocabulary."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from lexarium.domain.change import Action
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.record import build_record
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import register_vocabularies
from lexarium.store import change_log
from lexarium.store.change_log import RecordWrite
from lexarium.store.database import Database
from tests.support.browserless_client import BrowserlessClient, extract_text
from tests.support.databases import DatabaseUrlFactory
from tests.support.polling import wait_until
from tests.support.server import Server
from tests.support.vocabularies import create_vocabulary


@pytest.fixture(scope="module")
def server(sample_url: DatabaseUrlFactory) -> Iterator[Server]:
    url = sample_url("sqlite")
    with Server(url) as running:
        database = Database(url)
        for slug in ("plants", "secret"):
            create_vocabulary(database, slug, title=slug, schema="cognitive-atlas", private=slug == "secret")
            with database.write() as transaction:
                for family, plant in (("rosaceae", "rose"), ("fabaceae", "pea")):
                    owner, member = COLLECTIONS[f"{slug}/concept_class"], COLLECTIONS[f"{slug}/concept"]
                    fields = {"id": f"pl:{plant}", "name": f"wild {plant}", "id_concept_class": f"fam:{family}"}
                    new = [build_record(owner, {"id": f"fam:{family}", "name": family}), build_record(member, fields)]
                    writes = [RecordWrite(record, 1, Action.CREATE) for record in new]
                    change_log.save_records(transaction, writes, actor=SYSTEM_USER_ID, at=1)
        database.close()
        wait_until(lambda: running.get("/api/v1/search?q=wild+pea").json["hits"])
        yield running
    register_vocabularies([])


@pytest.mark.parametrize("class_ref", ["fam:rosaceae", "Rosaceae"])
def test_hits_are_filtered_by_a_class_of_any_vocabulary(server: Server, class_ref: str) -> None:
    result = server.get(f"/api/v1/search?q=wild&class={quote(class_ref)}").json
    assert [(hit["id"], hit["vocabulary"]) for hit in result["hits"]] == [("pl:rose", "plants")]
    assert result["facets"]["class"] == {"fam:rosaceae": 1}
    assert result["class_names"] == {"fam:rosaceae": "rosaceae"}


def test_an_unknown_or_unreadable_class_is_rejected(server: Server) -> None:
    for class_ref in ("pl:rose", "nothing", "secret\x1ffam:rosaceae"):
        assert server.get(f"/api/v1/search?q=wild&class={quote(class_ref)}").status == 422, class_ref


def test_pages_offer_classes_of_all_vocabularies(server: Server) -> None:
    visitor = BrowserlessClient(server)
    body = visitor.open("/search?q=wild")
    assert "class=fam%3Arosaceae" in body
    assert "\x1f" not in body
    assert "%1F" not in body
    text = extract_text(visitor.open("/search?q=wild&class=fam%3Arosaceae"))
    assert "wild rose" in text
    assert "wild pea" not in text
    assert "No class" in extract_text(visitor.open("/search?q=wild&class=nothing"))
