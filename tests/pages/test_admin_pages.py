"""Pages for administration, accounts and imports, without scripts."""

import json
import re
from collections.abc import Iterator
from html import unescape

import pytest

from tests.support.browserless_client import PASSWORD, BrowserlessClient, create_account, extract_text
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.polling import wait_until
from tests.support.server import Server
from tests.support.uploads import post_upload, send_files, wait_for_upload
from tests.support.webhook_receiver import WebhookReceiver

HOSTILE = '<script>alert("1")</script>'
ADMIN_PAGES = ["/admin", "/admin/people", "/admin/tokens", "/admin/webhooks"]


@pytest.fixture(scope="module", params=ENGINES)
def sample_server(request: pytest.FixtureRequest, sample_url: DatabaseUrlFactory) -> Iterator[Server]:
    """Server of the sample that may send webhooks to this machine."""
    settings = {"LEXARIUM_WEBHOOKS_PRIVATE": "yes", "LEXARIUM_SIGN_IN_RATE": "1000"}
    with Server(sample_url(request.param), **settings) as server:
        server.wait_until_ready()
        yield server


@pytest.fixture
def admin(sample_server: Server) -> BrowserlessClient:
    person = BrowserlessClient(sample_server)
    person.sign_in("admin")
    return person


@pytest.fixture
def curator(sample_server: Server) -> BrowserlessClient:
    person = BrowserlessClient(sample_server)
    person.sign_in("curator")
    return person


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as running:
        yield running


@pytest.mark.parametrize("path", ADMIN_PAGES)
def test_only_an_admin_can_open_administration_pages(sample_server: Server, path: str) -> None:
    stranger = BrowserlessClient(sample_server)
    stranger.open(path)
    assert stranger.path.startswith("/sign-in?next=")
    for role in ("contributor", "curator"):
        person = BrowserlessClient(sample_server)
        person.sign_in(role)
        assert "role admin" in extract_text(person.open(path, 403))
    assert sample_server.request("POST", "/admin/people", {"Sec-Fetch-Site": "same-origin"}, "name=x").status in (
        401,
        415,
    )


def test_a_contributor_cannot_import(sample_server: Server) -> None:
    person = BrowserlessClient(sample_server)
    person.sign_in("contributor")
    for body in (person.open("/import", 403), send_files(person, [("concept.json", b"[]")], 403)):
        assert "This page requires the role curator; your role is contributor." in extract_text(body)


def test_the_overview_shows_the_state_of_the_service(admin: BrowserlessClient) -> None:
    wait_until(lambda: "there is none yet" not in extract_text(admin.open("/admin")))  # an index is being built
    text = extract_text(admin.body)
    engine = "SQLite" if admin.server.url.startswith("sqlite") else "PostgreSQL"
    assert f"{engine}, schema" in text
    assert "Search index up to date" in text or "behind" in text
    assert "192" in text
    assert "password" not in admin.body.partition("<main")[2].casefold()


def test_an_account_is_created_given_a_password_and_another_role_and_erased(admin: BrowserlessClient) -> None:
    name = "Ada Lovelace"
    admin.open("/admin/people")
    admin.press("Add", {"name": name, "role": "contributor"})
    assert "Account created." in admin.body
    person_path = admin.path.partition("?")[0]
    admin.press("Set password", {"password": "short"}, 422)
    assert "Must have 10 to 1000 characters." in admin.body
    admin.press("Set password", {"password": PASSWORD})
    admin.press("Change role", {"role": "curator"})
    assert "Role changed." in admin.body
    other = BrowserlessClient(admin.server)
    other.send("/sign-in", {"name": name, "password": PASSWORD, "next": "/import"})
    assert other.path == "/import"
    assert name in admin.open("/admin/people")
    admin.open(f"{person_path}/erase")
    assert "is removed" in admin.body
    assert "This cannot be undone." in admin.body
    admin.press("Erase account")
    assert "Account erased" in admin.body
    assert name not in admin.open("/admin/people")
    admin.open(person_path, 404)
    other.open("/import")
    assert other.path.startswith("/sign-in")


def test_an_invalid_account_form_shows_errors_beside_fields_and_keeps_the_input(admin: BrowserlessClient) -> None:
    existing_name = create_account(admin.server, "contributor")
    admin.open("/admin/people")
    admin.press("Add", {"name": existing_name, "role": "curator"}, 422)
    assert "already" in re.findall(r'id="name-wrong">(.*?)<', admin.body)[0]
    assert f'value="{existing_name}"' in admin.body
    assert '<option value="curator" selected>' in admin.body
    admin.send("/admin/people", {"name": "", "role": "emperor"}, 422)
    assert 'id="name-wrong"' in admin.body
    assert 'id="role-wrong"' in admin.body


@pytest.mark.parametrize(
    ("path", "fields", "invalid_fields"),
    [
        ("/admin/people", {"name": "", "role": "emperor"}, {"name", "role"}),
        ("/admin/tokens", {"account": "x", "days": "x", "role": "emperor"}, {"days", "role"}),
        ("/admin/webhooks", {"url": "gopher://x"}, {"url"}),
        ("/account/tokens", {"days": "x"}, {"days"}),
        ("/account/password", {"old_password": "wrong", "password": "short"}, {"own_old_password", "own_password"}),
    ],
)
def test_all_errors_of_a_form_are_listed_on_top_with_focus_and_links_to_their_fields(
    admin: BrowserlessClient, path: str, fields: dict[str, str], invalid_fields: set[str]
) -> None:
    body = admin.send(path, fields, 422)
    (top,) = re.findall(r'<div class="notice" role="alert" tabindex="-1" autofocus>.*?</div>', body, re.DOTALL)
    assert set(re.findall(r'href="#([^"]+)"', top)) == invalid_fields
    for name in invalid_fields:
        assert re.search(rf'<(?:input|select) id="{name}"[^>]* aria-invalid="true"[^>]*="[^"]*{name}-wrong"', body)


def test_the_last_admin_cannot_be_demoted_or_erased(server: Server) -> None:
    person = BrowserlessClient(server)
    person.sign_in("admin")
    own_path = re.findall(r'href="(/admin/people/usr_[^"]+)"', person.open("/admin/people"))[0]
    person.open(own_path)
    person.press("Change role", {"role": "curator"}, 422)
    assert "is the last admin" in person.body
    person.open(f"{own_path}/erase")
    person.press("Erase account", status=409)
    assert "is the last admin" in person.body
    person.open("/admin")


def test_lists_of_accounts_and_tokens_accept_any_position(admin: BrowserlessClient) -> None:
    assert "No accounts from here on." in admin.open("/admin/people?from=zzzz")
    for path in ("/admin/people?from=%00", "/admin/tokens?before=1-%00&ended=1", "/admin/tokens?before=x"):
        admin.open(path)


def test_a_token_is_shown_once_used_and_revoked(admin: BrowserlessClient) -> None:
    owner = create_account(admin.server, "curator")
    admin.open("/admin/tokens")
    label = "nightly export"
    admin.press("Create token", {"account": owner, "label": label, "role": "", "days": "30", "old_password": "no"}, 422)
    assert "Must be your current password" in admin.body
    assert f'value="{label}"' in admin.body
    assert "no" not in re.findall(r'type="password" value="([^"]*)"', admin.body)
    form_values = {"account": owner, "label": label, "role": "contributor", "days": "30", "old_password": PASSWORD}
    admin.press("Create token", form_values, 201)
    secret = re.findall(r'<pre id="secret"[^>]*>(lex_[^<]+)</pre>', admin.body)[0]
    assert admin.response.headers["cache-control"] == "private, no-store"
    assert admin.server.get("/api/v1/me", Authorization=f"Bearer {secret}").json["token_role"] == "contributor"
    assert secret not in admin.open("/admin/tokens")
    row = next(row for row in admin.body.split("<tr>") if label in row)
    admin.open(unescape(re.findall(r'href="([^"]+/revoke)"', row)[0]))
    assert "This cannot be undone" in admin.body
    admin.press("Revoke token")
    assert "Token revoked" in admin.body
    assert admin.server.get("/api/v1/me", Authorization=f"Bearer {secret}").status == 401


def test_users_create_and_revoke_their_own_tokens_and_see_no_others(sample_server: Server) -> None:
    person, other = BrowserlessClient(sample_server), BrowserlessClient(sample_server)
    person.sign_in("contributor")
    other.sign_in("curator")
    other.open("/account")
    other_path = re.findall(r'href="(/account/tokens/[^"]+/revoke)"', other.body)[0]
    person.open(other_path, 404)
    person.send(other_path, {}, 404)
    person.open("/account")
    assert "role admin" not in person.body
    person.press("Create token", {"label": "mine", "days": "", "role": "curator", "old_password": PASSWORD}, 422)
    person.press("Create token", {"label": "mine", "days": "x", "old_password": PASSWORD}, 422)
    assert "Must be a whole number." in person.body
    person.press("Create token", {"label": "mine", "days": "", "old_password": PASSWORD}, 201)
    secret = re.findall(r"lex_[\w-]+", person.body)[0]
    assert "never" in person.body
    assert sample_server.get("/api/v1/me", Authorization=f"Bearer {secret}").status == 200
    person.open("/account")
    row = next(row for row in person.body.split("<tr>") if ">mine<" in row)
    person.open(unescape(re.findall(r'href="([^"]+/revoke)"', row)[0]))
    person.press("Revoke token")
    assert sample_server.get("/api/v1/me", Authorization=f"Bearer {secret}").status == 401


def test_a_user_changes_the_password_and_signs_in_again(sample_server: Server) -> None:
    person = BrowserlessClient(sample_server)
    name = person.sign_in("contributor")
    person.open("/account")
    person.press("Change password", {"old_password": "wrong", "password": "short"}, 422)
    assert person.body.count('class="wrong"') == 2
    person.press("Change password", {"old_password": PASSWORD, "password": "another horse battery"})
    assert person.path.startswith("/sign-in")
    person.send("/sign-in", {"name": name, "password": "another horse battery", "next": "/account"})
    assert person.path == "/account"


def test_a_webhook_is_created_shown_paused_tested_and_deleted(
    admin: BrowserlessClient, receiver: WebhookReceiver
) -> None:
    url, received = f"http://127.0.0.1:{receiver.port}/hook", receiver.received
    admin.open("/admin/webhooks")
    admin.press("Add", {"url": "gopher://x", "collections-task": "1"}, 422)
    assert "Is not allowed" in admin.body
    assert 'value="gopher://x"' in admin.body
    assert re.search(r'name="collections-task" value="1" checked', admin.body)
    admin.press("Add", {"url": url, "collections-task": "1", "actions-create": "1"}, 201)
    assert re.search(r'<pre id="secret"[^>]*>whsec_', admin.body)
    assert admin.response.headers["cache-control"] == "private, no-store"
    list_text = extract_text(admin.open("/admin/webhooks"))
    assert f"{url} task: added active" in list_text
    hook = re.findall(r'href="(/admin/webhooks/whk_[^"]+)"', admin.body)[-1]
    admin.open(hook)
    admin.press("Send test")
    assert "status 204." in admin.body
    assert json.loads(received[-1][1])["action"] == "test"
    assert re.search(r"UTC test 204 received", extract_text(admin.body))
    admin.press("Pause")
    assert "paused since" in extract_text(admin.body)
    admin.press("Resume")
    assert "Webhook resumed" in extract_text(admin.body)
    token = admin.server.create_token("curator")
    assert admin.server.post_json("/api/v1/task", {"name": "told task"}, token).status == 201
    wait_until(lambda: "delivered" in admin.open(hook))
    assert "told task" in str(received)
    admin.press("Rotate secret", status=201)
    assert "The previous secret stays valid" in admin.body
    admin.open(hook)
    admin.press("Save", {"url": "nowhere"}, 422)
    admin.press("Save", {"url": url, "actions-retire": "1"})
    assert "Webhook updated." in admin.body
    admin.open(f"{hook}/delete")
    admin.press("Delete webhook")
    assert url not in admin.body
    admin.open(hook, 404)


def test_a_failed_test_delivery_is_listed(admin: BrowserlessClient) -> None:
    admin.open("/admin/webhooks")
    admin.press("Add", {"url": "http://127.0.0.1:9/nobody"}, 201)
    admin.open(re.findall(r'href="(/admin/webhooks/whk_[^"]+)"', admin.body)[-1])
    text = extract_text(admin.press("Send test"))
    assert re.search(r"UTC test none no response", text)
    assert "State active" in text, "a trial is no delivery that failed"


def test_hostile_text_is_escaped(admin: BrowserlessClient) -> None:
    admin.open("/admin/people")
    admin.press("Add", {"name": HOSTILE, "role": "contributor"})
    for path in (admin.path, "/admin/people"):
        body = admin.open(path)
        assert HOSTILE not in body
        assert "&lt;script&gt;" in body
    form_values = {"account": HOSTILE, "label": HOSTILE, "days": "1", "old_password": PASSWORD}
    admin.open("/admin/tokens")
    assert HOSTILE not in admin.press("Create token", form_values, 201)
    assert HOSTILE not in admin.open("/admin/tokens")


def encode_concepts(*names: str) -> bytes:
    return json.dumps([{"id": f"trm_{name.replace(' ', '')}", "name": name} for name in names]).encode()


def test_files_are_previewed_then_imported(curator: BrowserlessClient) -> None:
    server = curator.server
    send_files(curator, [("concept.json", encode_concepts("brand new", "newer still")), ("task.json", b"[]")])
    body = wait_for_upload(curator)
    assert "Import preview" in body
    assert "concepts 2 0 0 0" in extract_text(body)
    assert server.get("/api/v1/concept/trm_brandnew").status == 404
    curator.press("Import")
    body = wait_for_upload(curator)
    assert "Import complete." in body
    assert server.get("/api/v1/concept/trm_brandnew").json["name"] == "brand new"
    send_files(curator, [("concept.json", encode_concepts("brand new", "newer still"))])
    assert "No changes" in wait_for_upload(curator)
    assert ">Import</button>" not in curator.body


def test_changes_of_an_import_are_previewed_by_record_and_can_be_undone_together(curator: BrowserlessClient) -> None:
    server = curator.server
    first = [{"id": "trm_u1", "name": "undone one", "definition_text": "First."}, {"id": "trm_u2", "name": "parent"}]
    send_files(curator, [("concept.json", json.dumps(first).encode())])
    wait_for_upload(curator)
    curator.press("Import")
    wait_for_upload(curator)
    table = "id,name,definition,parent\ntrm_u1,renamed,Second.,trm_u2\ntrm_u2,parent,,\ntrm_u3,third of it,,trm_u1\n"
    send_files(curator, [("concept.csv", table.encode())])
    text = extract_text(wait_for_upload(curator))
    assert "New: 1 record third of it concept" in text
    assert "Changed: 1 record renamed concept Name undone one renamed Definition First. Second. Kind of trm_u2" in text
    assert "Relations added: 2 renamed kind of parent third of it kind of renamed" in text
    assert '<a href="/id/trm_u1">renamed</a>' in curator.body
    assert 'href="/id/trm_u3"' not in curator.body, "it is not there yet"
    curator.press("Import")
    assert '<a href="/id/trm_u3">third of it</a>' in wait_for_upload(curator)
    page_path = unescape(re.search(r'href="(/changes\?since=[^"]+)"', curator.body)[1])  # type: ignore[index]
    assert "2 changes" in extract_text(curator.open(page_path))
    assert re.findall(r'href="/id/(\w+)/history"', curator.body) == ["trm_u3", "trm_u1"]
    stranger = BrowserlessClient(server)
    assert "Undo import" not in stranger.open(page_path)
    assert "Import undone." in curator.press("Undo import")
    restored = server.get("/api/v1/concept/trm_u1").json
    assert (restored["name"], restored["definition_text"], restored["relations"]) == ("undone one", "First.", {})
    assert server.get("/api/v1/concept/trm_u3").status == 410
    curator.open(page_path)
    assert "trm_u1, trm_u3 changed since" in extract_text(curator.press("Undo import", status=409))
    send_files(curator, [("concept.csv", table.encode())])
    wait_for_upload(curator)
    curator.press("Import")
    assert "Import complete." in wait_for_upload(curator), "what was undone can be imported again"
    assert server.get("/api/v1/concept/trm_u1").json["name"] == "renamed"
    assert server.get("/api/v1/concept/trm_u3").json["relations"] == {"KINDOF": ["trm_u1"]}


def test_changes_other_than_imports_cannot_be_undone_together(curator: BrowserlessClient) -> None:
    server = curator.server
    revision = server.get("/api/v1").json["revision"]
    server.post_json("/api/v1/task", {"name": "by hand"}, server.create_token("curator"))
    for since, until in ((revision, revision + 1), (0, 1), (5, 5), (7, 3), (10**12, 10**13)):
        assert "Undo import" not in curator.open(f"/changes?since={since}&until={until}")
        curator.send("/changes/undo", {"since": str(since), "until": str(until)}, 409)
    curator.send("/changes/undo", {}, 409)
    assert "by hand" in curator.open(f"/changes?since={revision}&until={revision + 1}")


def test_a_preview_shows_the_first_hundred_of_many_records(curator: BrowserlessClient) -> None:
    send_files(curator, [("concept.json", encode_concepts(*(f"one of many {number}" for number in range(130))))])
    text = extract_text(wait_for_upload(curator))
    assert "New: 130 records" in text
    assert text.count("one of many") == 100
    assert "and 30 more" in text


def test_skipped_records_are_shown(curator: BrowserlessClient) -> None:
    server, token = curator.server, curator.server.create_token("curator")
    ids = [server.post_json("/api/v1/concept", {"name": name}, token).json["id"] for name in ("stays", "goes")]
    headers = {"Authorization": f"Bearer {token}", "If-Match": "*", "Content-Type": "application/json"}
    server.request("POST", f"/api/v1/concept/{ids[1]}/merge", headers, json.dumps({"into": ids[0]}))
    send_files(curator, [("concept.json", json.dumps([{"id": ids[1], "name": "goes"}]).encode())])
    assert "Skipped: 1 record goes concept" in extract_text(wait_for_upload(curator))


def test_the_preview_page_names_its_own_form_fields_in_messages(curator: BrowserlessClient) -> None:
    send_files(curator, [("terms.csv", b"Begriff,definition\neigens,told\n")], vocabulary="main")
    assert "one of them `id` or `name`" in extract_text(wait_for_upload(curator))
    curator.press("Preview again", {"map": "Begriff=nonsense\r\nno pair"}, 422)
    assert "Line 1 &#39;nonsense&#39; is not one of" in curator.body
    assert "Line 2 must be COLUMN=FIELD." in curator.body
    curator.press("Preview again", {"map": "Begriff=name"})
    text = extract_text(wait_for_upload(curator))
    assert "choose it with “Collection”, or in the file's name" in text
    assert "--" not in text
    curator.press("Preview again", {"collection": "concept"})
    assert "New: 1 record eigens concept" in extract_text(wait_for_upload(curator))
    assert "Line 1 must be COLUMN=FIELD" in extract_text(
        send_files(curator, [("concept.csv", b"name\nx\n")], 422, map="/etc/hostname")
    )
    send_files(curator, [("concept.csv", b"name,my story,author's\nx,y,z\n")])
    text = extract_text(wait_for_upload(curator))
    assert "map it with “Column mapping” my story=FIELD" in text
    assert "map it with “Column mapping” author's=FIELD" in text
    assert "--" not in text
    assert '<details class="otherwise" open><summary>Change import options' in curator.body
    send_files(curator, [("unknown", b"\x01\x02")])
    assert "use “Format” with one of" in extract_text(wait_for_upload(curator))


def test_an_error_in_a_file_is_shown_with_its_location_and_nothing_is_imported(curator: BrowserlessClient) -> None:
    send_files(curator, [("concept.json", b'[{"id": "trm_x1", "name": "fine"},\n {"id": "trm_x2" "name": 1}]')])
    body = extract_text(wait_for_upload(curator))
    assert "Nothing was imported" in body
    assert "concept.json, line 2, column" in body
    assert "/tmp" not in body
    assert ">Import</button>" not in curator.body
    assert curator.server.get("/api/v1/concept/trm_x1").status == 404


def test_a_preview_with_other_options_needs_no_new_upload(curator: BrowserlessClient) -> None:
    content = b"name,definition\nread otherwise,told at last\n"
    send_files(curator, [("mystery", content)], format="csv", vocabulary="main")
    assert "1 problem" in extract_text(wait_for_upload(curator))
    curator.press("Preview again", {"collection": "concept"})
    assert "concepts 1 0 0 0" in extract_text(wait_for_upload(curator))
    curator.press("Import")
    assert "Import complete." in wait_for_upload(curator)


def test_missing_files_and_an_unknown_format_are_reported_at_once(curator: BrowserlessClient) -> None:
    body = send_files(curator, [], 422, format="nonsense")
    assert 'id="files-wrong"' in body
    assert 'id="format-wrong"' in body


def test_conflicts_are_shown_and_resolved_as_chosen(curator: BrowserlessClient) -> None:
    server = curator.server
    for preference, expected in (("", "mine"), ("theirs", "theirs")):
        name = f"trm_conflict{preference}"

        def encode_edition(definition: str, name: str = name) -> bytes:
            return json.dumps([{"id": name, "name": name, "definition_text": definition}]).encode()

        send_files(curator, [("concept.json", encode_edition("first"))])
        wait_for_upload(curator)
        curator.press("Import")
        wait_for_upload(curator)
        token = server.create_token("curator")
        headers = {"Authorization": f"Bearer {token}", "If-Match": "*", "Content-Type": "application/json"}
        server.request("PATCH", f"/api/v1/concept/{name}", headers, json.dumps({"definition_text": "mine"}))
        send_files(curator, [("concept.json", encode_edition("theirs"))])
        text = extract_text(wait_for_upload(curator))
        assert "1 conflict" in text
        assert "mine theirs" in text
        if preference:
            curator.press("Import", {"prefer": preference})
            wait_for_upload(curator)
        assert server.get(f"/api/v1/concept/{name}").json["definition_text"] == expected


@pytest.mark.parametrize("preference", ["", "theirs", "ours"])
def test_edits_after_the_preview_require_a_new_preview(curator: BrowserlessClient, preference: str) -> None:
    server, name = curator.server, f"trm_meanwhile{preference}"

    def build_files(**fields: str) -> list[tuple[str, bytes]]:
        return [("concept.json", json.dumps([{"id": name, **fields}, {"id": "trm_aside", "name": "aside"}]).encode())]

    def edit_record(**fields: str) -> None:
        headers = {"Authorization": f"Bearer {server.create_token('curator')}", "If-Match": "*"}
        body = json.dumps(fields)
        server.request("PATCH", f"/api/v1/concept/{name}", {**headers, "Content-Type": "application/json"}, body)

    send_files(curator, build_files(name="first", definition_text="first"))
    wait_for_upload(curator)
    curator.press("Import")
    wait_for_upload(curator)
    edit_record(definition_text="mine")
    send_files(curator, build_files(name="second", definition_text="second"))
    assert "1 conflict" in extract_text(wait_for_upload(curator))
    edit_record(name="renamed", definition_text="mine again")
    curator.press("Import", {"prefer": preference})
    if preference:
        text = extract_text(wait_for_upload(curator))
        assert f"{name} was changed after the preview. Nothing was imported." in text
        assert "2 conflicts" in text
        assert server.get(f"/api/v1/concept/{name}").json["name"] == "renamed"
        curator.press("Import", {"prefer": preference})
    wait_for_upload(curator)
    assert server.get(f"/api/v1/concept/{name}").json["name"] == ("second" if preference == "theirs" else "renamed")


def test_a_report_shows_files_by_their_original_names(curator: BrowserlessClient) -> None:
    editions = [json.dumps([{"id": "trm_twice", "name": name}]).encode() for name in ("one", "another")]
    send_files(curator, [("concept.json", editions[0]), ("more.json", editions[1])], collection="concept")
    text = extract_text(wait_for_upload(curator))
    assert "differs from concept.json" in text
    assert "lexarium-uploads" not in text


def test_an_upload_is_visible_to_its_sender_only_and_can_be_discarded(
    curator: BrowserlessClient, sample_server: Server
) -> None:
    send_files(curator, [("concept.json", encode_concepts("thrown away"))])
    wait_for_upload(curator)
    page_path = curator.path
    other = BrowserlessClient(sample_server)
    other.sign_in("admin")
    other.open(page_path, 404)
    other.send(page_path, {}, 404)
    curator.press("Discard files")
    assert curator.path == "/import"
    curator.open(page_path, 404)


def test_an_import_cannot_be_confirmed_twice(curator: BrowserlessClient) -> None:
    send_files(curator, [("concept.json", encode_concepts("only once"))])
    wait_for_upload(curator)
    page_path = curator.path
    curator.press("Import")
    wait_for_upload(curator)
    assert "already imported" in extract_text(curator.send(page_path, {"prefer": ""}, 409))


def test_a_hostile_file_name_is_sanitized(curator: BrowserlessClient) -> None:
    send_files(curator, [("../../../" + HOSTILE.replace('"', "'") + ".json", b'[{"id": "trm_x9"}'), ("..", b"[]")])
    body = wait_for_upload(curator)
    assert "<script>alert" not in body
    assert ".." not in extract_text(body.partition("<main")[2])


def test_a_too_large_upload_is_rejected(url: str) -> None:
    with Server(url, LEXARIUM_UPLOAD_MB="1") as server:
        person = BrowserlessClient(server)
        person.sign_in("curator")
        assert "up to 1 MiB" in extract_text(person.open("/import"))
        send_files(person, [("concept.json", b" " * (2 << 20))], 413)


def test_a_cross_site_upload_is_rejected(curator: BrowserlessClient) -> None:
    assert post_upload(curator, b"--x--\r\n", "cross-site").status == 403
