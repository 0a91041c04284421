"""Search, annotation and reconciliation over several vocabularies."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from lexarium.domain.account import Role
from lexarium.domain.vocabulary import register_vocabularies
from lexarium.services.access.accounts import add_account
from lexarium.services.access.permissions import Caller
from lexarium.services.maintenance.index_check import check_index
from lexarium.services.search.annotator_cache import AnnotatorCache
from lexarium.services.search.indexer import Indexer
from lexarium.services.search.record_search import RecordSearch, SearchQuery
from lexarium.services.vocabularies.access import get_full_scope, get_read_scope
from lexarium.store.accounts import set_vocabulary_role
from lexarium.store.database import Database
from tests.support.browserless_client import BrowserlessClient
from tests.support.imports import build_log_entry, save_entries
from tests.support.polling import wait_until
from tests.support.reconciliation_schemas import SpecificationSchemas
from tests.support.server import Server, run_cli
from tests.support.vocabularies import (
    add_concept,
    create_vocabulary,
    purge_vocabulary,
    remove_vocabulary,
    restore_vocabulary,
    update_vocabulary,
)


@pytest.fixture(autouse=True)
def _only_main() -> Iterator[None]:
    yield
    register_vocabularies([])


@pytest.fixture
def vocabularies(database: Database) -> Database:
    """Database with the main vocabulary, one in three languages and a private one."""
    with database.write() as transaction:
        save_entries(transaction, build_log_entry("memory"))
    create_vocabulary(database, "thes", languages=["en", "de", "fr"], title="Thesaurus")
    names = {"en": "memory", "de": "Gedächtnis", "fr": "mémoire"}
    definitions = {"en": "Keeping of facts.", "de": "Behalten von Tatsachen."}
    add_concept(database, "thes", "c1", names, definitions=definitions, iri="https://example.org/c1")
    add_concept(database, "thes", "c2", {"en": "working memory"}, alternative_ids=("OLD:2",), broader="c1")
    create_vocabulary(database, "secret", private=True)
    add_concept(database, "secret", "s1", {"en": "hidden memory zyzzyva"})
    return database


@pytest.fixture
def indexer(vocabularies: Database, tmp_path: Path) -> Iterator[Indexer]:
    new_indexer = Indexer(vocabularies, str(tmp_path / "index"))
    new_indexer.catch_up()
    yield new_indexer
    new_indexer.stop()


@pytest.fixture
def finder(vocabularies: Database, indexer: Indexer) -> RecordSearch:
    return RecordSearch(vocabularies, indexer)


def search_ids(finder: RecordSearch, text: str, **options: Any) -> list[tuple[str, str]]:
    return [(hit.vocabulary, hit.local_id) for hit in finder.search(SearchQuery(text, **options)).hits]


def test_all_public_vocabularies_are_searched(finder: RecordSearch) -> None:
    result = finder.search(SearchQuery("memory"))
    assert {hit.vocabulary for hit in result.hits} == {"main", "thes"}
    assert result.total == 3
    assert result.facets["vocabulary"] == {"thes": 2, "main": 1}
    assert result.facets["collection"] == {"thes/concept": 2, "concept": 1}


def test_a_search_can_be_limited_to_vocabularies(finder: RecordSearch) -> None:
    assert search_ids(finder, "memory", scope=get_read_scope(None, ["thes"])) == [("thes", "c1"), ("thes", "c2")]
    assert {slug for slug, _ in search_ids(finder, "memory", scope=get_read_scope(None, ["main"]))} == {"main"}


def test_a_private_vocabulary_is_searched_for_users_with_a_role_in_it(
    vocabularies: Database, finder: RecordSearch
) -> None:
    account = add_account(vocabularies, "Ada", Role.READER)
    with vocabularies.write() as transaction:
        set_vocabulary_role(transaction, account.id, "secret", Role.READER)
    member = Caller(account, Role.NONE, "tok_1", vocabulary_roles={"secret": Role.READER})
    stranger = Caller(account, Role.NONE, "tok_2")
    assert search_ids(finder, "zyzzyva", scope=get_read_scope(member)) == [("secret", "s1")]
    for scope in (get_read_scope(None), get_read_scope(stranger)):
        for text in ("zyzzyva", "hidden", "s1", "zyzzyvb", "hiden memory"):
            result = finder.search(SearchQuery(text, scope=scope))
            assert all(hit.vocabulary != "secret" for hit in result.hits)
            assert "secret" not in result.facets["vocabulary"]
            assert "zyzzyva" not in (result.did_you_mean or "")
            assert all(item.collection != "secret/concept" for item in finder.suggest(text, scope=scope))


@pytest.mark.parametrize("text", ["c1", "https://example.org/c1", "HTTPS://EXAMPLE.ORG/C1"])
def test_a_record_is_found_by_its_id_and_its_iri(finder: RecordSearch, text: str) -> None:
    [hit] = finder.search(SearchQuery(text)).hits
    assert (hit.vocabulary, hit.local_id, hit.field) == ("thes", "c1", "id")


def test_a_record_is_found_by_an_alternative_id(finder: RecordSearch) -> None:
    assert search_ids(finder, "old:2") == [("thes", "c2")]


@pytest.mark.parametrize(
    ("text", "field", "language"),
    [
        ("Gedachtnis", "name", "de"),
        ("mémoire", "name", "fr"),
        ("Tatsachen", "definition", "de"),
        ("keeping facts", "definition", "en"),
    ],
)
def test_a_hit_includes_the_matching_text_and_its_language(
    finder: RecordSearch, text: str, field: str, language: str
) -> None:
    [hit] = finder.search(SearchQuery(text)).hits
    assert (hit.local_id, hit.field, hit.language, hit.name) == ("c1", field, language, "memory")


def test_names_are_shown_in_the_preferred_language(finder: RecordSearch) -> None:
    names = [hit.name for hit in finder.search(SearchQuery("c1", languages=("de-AT", "en"))).hits]
    assert names == ["Gedächtnis"]
    assert [item.name for item in finder.suggest("memo", languages=("fr",), scope=get_read_scope(None, ["thes"]))] == [
        "mémoire",
        "working memory",
    ]


def test_hits_in_the_preferred_language_come_first_within_a_tier(vocabularies: Database, indexer: Indexer) -> None:
    add_concept(vocabularies, "thes", "c3", {"en": "gift", "de": "Geschenk"})
    add_concept(vocabularies, "thes", "c4", {"en": "poison", "de": "Gift"})
    indexer.catch_up()
    finder = RecordSearch(vocabularies, indexer)
    for language, first, second in (("de", "c4", "c3"), ("en", "c3", "c4")):
        hits = finder.search(SearchQuery("gift", languages=(language,))).hits
        assert [hit.local_id for hit in hits] == [first, second]
        assert hits[0].score >= hits[1].score


def test_the_index_follows_removal_restoration_and_purge_of_a_vocabulary(
    vocabularies: Database, indexer: Indexer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finder = RecordSearch(vocabularies, indexer)

    def find(text: str = "memory") -> set[str]:
        indexer.catch_up()
        assert check_index(vocabularies, tmp_path / "index").problems == []
        return {slug for slug, _ in search_ids(finder, text, scope=get_full_scope())}

    assert find() == {"main", "thes", "secret"}
    remove_vocabulary(vocabularies, "thes")
    with monkeypatch.context() as patch:
        patch.setattr("lexarium.services.search.indexer._WAIT_SECONDS", 0.1)
        assert search_ids(finder, "working") == []  # before the index follows, too
    assert find() == {"main", "secret"}
    restore_vocabulary(vocabularies, "thes")
    assert find() == {"main", "thes", "secret"}
    remove_vocabulary(vocabularies, "thes")
    purge_vocabulary(vocabularies, "thes")
    assert find() == {"main", "secret"}
    assert indexer.lag(vocabularies.get_position()) == 0


def test_records_of_a_purged_vocabulary_do_not_reappear_in_a_new_one_of_the_same_name(
    vocabularies: Database, indexer: Indexer, tmp_path: Path
) -> None:
    annotators = AnnotatorCache(vocabularies, str(tmp_path))
    annotators.get_current().result()
    remove_vocabulary(vocabularies, "thes")
    purge_vocabulary(vocabularies, "thes")
    create_vocabulary(vocabularies, "thes", languages=["en", "de", "fr"])
    indexer.catch_up()
    scope = get_read_scope(None, ["thes"])
    assert search_ids(RecordSearch(vocabularies, indexer), "memory", scope=scope) == []
    mentions = annotators.get_current().result().find_mentions(["memory"], scope.collections)
    assert [mention for batch in mentions for mention in batch] == []


def test_the_index_catches_up_with_a_log_whose_last_changes_were_deleted(
    vocabularies: Database, indexer: Indexer, tmp_path: Path
) -> None:
    create_vocabulary(vocabularies, "last")
    add_concept(vocabularies, "last", "l1", {"en": "memory"})
    remove_vocabulary(vocabularies, "last")
    purge_vocabulary(vocabularies, "last")
    indexer.catch_up()
    assert indexer.lag(vocabularies.get_position()) == 0
    assert AnnotatorCache(vocabularies, str(tmp_path)).get_current().result() is not None


def test_changing_schema_or_language_reindexes_the_vocabulary(vocabularies: Database, indexer: Indexer) -> None:
    update_vocabulary(vocabularies, "thes", languages=["de", "en", "fr"])
    indexer.catch_up()
    [hit] = RecordSearch(vocabularies, indexer).search(SearchQuery("c1")).hits
    assert hit.name == "Gedächtnis"


def test_mentions_are_found_in_all_languages_of_chosen_vocabularies(vocabularies: Database, tmp_path: Path) -> None:
    annotator = AnnotatorCache(vocabularies, str(tmp_path)).get_current().result()

    def find(text: str, *slugs: str) -> set[str]:
        batches = annotator.find_mentions([text], get_read_scope(None, slugs).collections)
        return {term.id for batch in batches for mention in batch for term in mention.terms}

    assert find("Das Gedächtnis", "thes") == {"thes\x1fc1"}
    assert find("Das Gedächtnis", "main") == set()
    assert find("hidden memory zyzzyva") == find("memory")


class TestServer:
    """Interfaces of a server."""

    @pytest.fixture
    def server(self, vocabularies: Database, url: str) -> Iterator[Server]:
        with Server(url) as running_server:
            yield running_server

    def test_hits_include_their_vocabulary(self, server: Server) -> None:
        result = server.get("/api/v1/search?q=memory").json
        assert {(hit["vocabulary"], hit["collection"]) for hit in result["hits"]} == {
            ("main", "concept"),
            ("thes", "concept"),
        }
        assert result["facets"]["collection"] == {"concept": 3}
        assert "\\u001f" not in json.dumps(result)
        chosen = server.get("/api/v1/search?q=memory&vocabulary=thes,main&collection=concept").json
        assert chosen["total"] == 3
        assert server.get("/api/v1/search?q=memory&vocabulary=secret").status == 404
        assert server.get("/api/v1/search?q=memory&collection=task&vocabulary=thes").status == 422
        assert b"secret" not in server.get("/api/v1/search?q=memory&collection=nothing").body

    def test_names_are_returned_in_the_language_of_the_request(self, server: Server) -> None:
        by_header = server.get("/api/v1/search?q=c1", **{"Accept-Language": "fr, en;q=0.5"})
        assert by_header.json["hits"][0]["name"] == "mémoire"
        assert "Accept-Language" in by_header.headers["vary"]
        assert server.get("/api/v1/search?q=c1&lang=de").json["hits"][0]["name"] == "Gedächtnis"
        assert "Write de-AT." in server.get("/api/v1/search?q=c1&lang=de_AT").json["errors"][0]["detail"]
        suggestions = server.get("/api/v1/suggest?prefix=ged&lang=de").json["suggestions"]
        assert [(item["vocabulary"], item["text"], item["language"]) for item in suggestions] == [
            ("thes", "Gedächtnis", "de")
        ]

    def test_a_global_role_allows_searching_private_vocabularies(self, server: Server) -> None:
        token = server.create_token("curator")
        headers = {"Authorization": f"Bearer {token}"}
        assert server.get("/api/v1/search?q=zyzzyva", **headers).json["total"] == 1
        assert server.get("/api/v1/search?q=zyzzyva").json["total"] == 0
        assert server.get("/vocabularies/secret/reconcile", **headers).status == 200
        assert server.get("/vocabularies/secret/reconcile").status == 404

    def test_a_page_session_can_search_download_and_complete_private_vocabularies(self, server: Server) -> None:
        client = BrowserlessClient(server)
        client.sign_in("curator")
        for path in ("search?q=zyzzyva&format=csv", "search?q=zyzzyva", "suggest?prefix=zyz"):
            assert "hidden memory" in client.open(f"/api/v1/{path}")
            assert client.response.headers["cache-control"] == "private, no-cache"
            assert b"hidden memory" not in server.get(f"/api/v1/{path}").body

    def test_texts_are_annotated_with_chosen_vocabularies(self, server: Server) -> None:
        headers = {"Content-Type": "text/plain"}
        for query, slugs in (("", {"main", "thes"}), ("?vocabulary=thes", {"thes"})):
            body = server.request("POST", f"/api/v1/annotate{query}", headers, "hidden memory zyzzyva").json
            assert {item["vocabulary"] for item in body["annotations"]} == slugs

    @pytest.mark.parametrize(("path", "c1", "c2"), [("", "https://example.org/c1", "thes:c2"), ("thes", "c1", "c2")])
    def test_records_of_any_public_vocabulary_are_reconciled(
        self, server: Server, schemas: SpecificationSchemas, path: str, c1: str, c2: str
    ) -> None:
        start = f"/vocabularies/{path}/reconcile" if path else "/reconcile"
        manifest = server.get(start).json
        schemas.check("manifest", manifest)
        queries = {"q": {"query": "memory"}, "w": {"query": "working memory", "properties": []}}
        results = server.get(f"{start}?{urlencode({'queries': json.dumps(queries)})}").json
        schemas.check("reconciliation-result-batch", results)
        assert c1 in [item["id"] for item in results["q"]["result"]]
        assert [item["id"] for item in results["w"]["result"] if item["match"]] == [c2]
        assert b"zyzzyva" not in json.dumps(results).encode()
        extension = {"ids": [c1, c2, "secret:s1"], "properties": [{"id": "broader"}, {"id": "name"}]}
        extended = server.get(f"{start}?{urlencode({'extend': json.dumps(extension)})}").json
        schemas.check("data-extension-response", extended)
        rows = extended["rows"]
        assert rows[c2]["broader"] == [{"id": c1, "name": "memory"}]
        assert rows["secret:s1"]["name"] == []
        assert server.get(f"{start}/preview?id={quote(c1, safe='')}").status == 200
        assert server.get(f"{start}/preview?id=secret%1Fs1").status == 404
        suggestions = server.get(f"{start}/suggest/entity?prefix=work").json
        schemas.check("suggest-entities-response", suggestions)
        assert [item["id"] for item in suggestions["result"]] == [c2]
        types = [item["id"] for item in server.get(f"{start}/suggest/type?prefix=concept").json["result"]]
        assert ("concept" if path else "thes/concept") in types
        assert not any("secret" in item for item in types)

    def test_valpha_serves_one_vocabulary(self, server: Server, vocabularies: Database) -> None:
        before = [server.get(f"/api/v-alpha/{path}").body for path in ("concept", "search", "search?q=memory")]
        assert all(b"memory" in body and b'"c1"' not in body for body in before)
        create_vocabulary(vocabularies, "atlas", schema="cognitive-atlas")
        add_concept(vocabularies, "atlas", "trm_1", {"": "attention"})
        update_vocabulary(vocabularies, "atlas", valpha=True)
        # On PostgreSQL, the server is notified of the writes of this process.
        wait_until(lambda: [item["id"] for item in server.get("/api/v-alpha/concept").json] == ["trm_1"])
        assert [item["id"] for item in server.get("/api/v-alpha/search").json] == ["trm_1"]
        assert [item["id"] for item in server.get("/api/v-alpha/search?q=attention").json] == ["trm_1"]
        assert server.get("/api/v-alpha/search?q=memory").json == []
        record = server.get("/api/v-alpha/concept?id=trm_1").json
        assert (record["id"], record["type"]) == ("trm_1", "concept")
        assert server.get("/api/v-alpha/concept?name=attention").json == record
        token = server.create_token("curator")
        posted = server.post_json("/api/v-alpha/concept", {"name": "focus"}, token)
        assert posted.status == 201, posted.body
        assert server.get(posted.headers["location"]).json["name"] == "focus"
        update_vocabulary(vocabularies, "atlas", private=True)
        wait_until(lambda: server.get("/api/v-alpha/concept").json == server.get("/api/v-alpha/search").json == [])
        assert server.get("/api/v-alpha/concept?id=trm_1").status == 404


def test_commands_search_and_show_records_of_any_vocabulary(vocabularies: Database, url: str, tmp_path: Path) -> None:
    options = "--database", url
    environment = {"LEXARIUM_INDEX": str(tmp_path / "index")}
    found = json.loads(run_cli("search", "memory", "--vocabulary", "thes", "--json", *options, **environment).stdout)
    assert [hit["id"] for hit in found["hits"]] == ["c1", "c2"]
    for name in ("c1", "https://example.org/c1"):
        shown = run_cli("show", name, *options).stdout
        assert "thes" in shown
        assert "working memory" in shown
    assert run_cli("show", "OLD:2", "--vocabulary", "main", *options).returncode == 1
    assert "\x1f" not in run_cli("show", "OLD:2", "--json", *options).stdout
