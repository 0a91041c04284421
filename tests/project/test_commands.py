"""Commands of `lexarium`."""

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.databases import DatabaseUrlFactory
from tests.support.polling import DEADLINE_SECONDS
from tests.support.server import Server, SpawnedServer, run_cli, run_cli_with_input
from tests.support.terminal import run_in_terminal

LIST_COMMANDS = (["user", "list"], ["token", "list"])


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/catalogue.db"


def test_the_default_database_is_a_file_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_cli("migrate").returncode == 0
    assert (tmp_path / "lexarium.db").is_file()


def test_the_database_is_set_by_variable_and_overridden_by_option(tmp_path: Path) -> None:
    assert run_cli("migrate", LEXARIUM_DATABASE=f"sqlite:///{tmp_path}/by-variable.db").returncode == 0
    variable = f"sqlite:///{tmp_path}/unused.db"
    assert (
        run_cli("migrate", "--database", f"sqlite:///{tmp_path}/by-option.db", LEXARIUM_DATABASE=variable).returncode
        == 0
    )
    assert {path.name for path in tmp_path.glob("*.db")} == {"by-variable.db", "by-option.db"}


def test_the_memory_for_bodies_must_be_at_least_the_largest_body(database_url: str) -> None:
    result = run_cli("serve", "--port", "0", "--database", database_url, LEXARIUM_BODIES_MB="63")
    assert result.returncode == 1
    assert "The setting bodies_mb (LEXARIUM_BODIES_MB) must be at least 64" in result.stderr
    result = run_cli("serve", "--database", database_url, LEXARIUM_BODIES_MB="64", LEXARIUM_BODY_KB="65537")
    assert "The setting bodies_mb (LEXARIUM_BODIES_MB) must be at least 65" in result.stderr


def test_token_create_prints_only_the_token(url: str) -> None:
    assert run_cli("user", "add", "Ada [bold]", "--role", "curator", "--database", url).stdout.startswith("usr_")
    result = run_cli("token", "create", "Ada [bold]", "--database", url)
    assert result.returncode == 0
    assert len(result.stdout.split()) == 1
    assert result.stdout.strip() not in result.stderr
    entries = json.loads(run_cli("token", "list", "--json", "--database", url).stdout)
    assert entries[0]["account"] == "Ada [bold]"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", entries[0]["created"])
    assert result.stdout.strip() not in json.dumps(entries)


def test_a_password_is_read_from_standard_input(database_url: str) -> None:
    run_cli("user", "add", "ada", "--role", "admin", "--database", database_url)
    for password, code in (("a long enough one", 0), ("short", 1)):
        result = run_cli_with_input(password + "\n", "user", "password", "ada", "--database", database_url)
        assert result.returncode == code
        assert password not in result.stdout + result.stderr


def test_accounts_are_listed_changed_and_erased(url: str) -> None:
    account_ids = {
        name: run_cli("user", "add", name, "--role", role, "--database", url).stdout.strip()
        for name, role in (("Grace [red]", "admin"), ("Ada", "curator"))
    }
    secret = run_cli("token", "create", "Ada", "--label", "Ada's laptop", "--database", url).stdout.strip()
    assert "Grace [red]" in run_cli("user", "list", "--database", url).stdout
    assert run_cli("user", "role", "Ada", "admin", "--database", url).returncode == 0
    entries = json.loads(run_cli("user", "list", "--json", "--database", url).stdout)
    assert [(account["name"], account["role"]) for account in entries] == [("Ada", "admin"), ("Grace [red]", "admin")]
    assert run_cli("user", "role", "Ada", "king", "--database", url).returncode == 2
    assert run_cli("user", "remove", "Ada", "--yes", "--database", url).returncode == 0
    listing_text = json.dumps(
        [json.loads(run_cli(*command, "--json", "--database", url).stdout) for command in LIST_COMMANDS]
    )
    assert "Ada" not in listing_text
    assert account_ids["Ada"] in listing_text
    for arguments in (
        ["user", "remove", account_ids["Ada"], "--yes"],
        ["token", "create", account_ids["Ada"]],
        ["user", "password", account_ids["Ada"]],
    ):
        result = run_cli_with_input("a long enough one\n", *arguments, "--database", url)
        assert (result.returncode, result.stdout) == (1, "")
        assert "erased" in result.stderr
    with Server(url) as server:
        assert server.get("/api/v1/me", Authorization=f"Bearer {secret}").status == 401


def test_lists_are_not_truncated_on_a_narrow_terminal(database_url: str) -> None:
    run_cli("user", "add", "Ada Lovelace of London", "--role", "admin", "--database", database_url)
    run_cli(
        "token", "create", "Ada Lovelace of London", "--days", "3", "--label", "her machine", "--database", database_url
    )
    for command in LIST_COMMANDS:
        output = run_in_terminal(*command, "--database", database_url)
        assert "Lovelace" in output
        assert "…" not in output


def test_tokens_are_not_stored_in_clear_text(database_url: str, tmp_path: Path) -> None:
    run_cli("user", "add", "ada", "--role", "admin", "--database", database_url)
    secret = run_cli("token", "create", "ada", "--database", database_url).stdout.strip()
    assert secret.encode() not in (tmp_path / "catalogue.db").read_bytes()


def test_the_role_of_a_token_is_at_most_that_of_its_account(database_url: str) -> None:
    run_cli("user", "add", "ada", "--role", "contributor", "--database", database_url)
    result = run_cli("token", "create", "ada", "--role", "admin", "--database", database_url)
    assert (result.returncode, result.stdout) == (1, "")
    assert "contributor" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["user", "add", "ada", "--role", "curator"], "already"),
        (["user", "add", " ", "--role", "curator"], "empty"),
        (["user", "role", "nobody", "admin"], "nobody"),
        (["user", "role", "root", "curator"], "last admin"),
        (["user", "remove", "nobody"], "nobody"),
        (["user", "remove", "ada"], "Use --yes"),
        (["user", "remove", "root", "--yes"], "last admin"),
        (["token", "create", "nobody"], "nobody"),
        (["token", "revoke", "tok_none"], "tok_none"),
        (["show", "trm_none"], "trm_none"),
        (["import", "absent.json"], "absent.json"),
        (["export", "--format", "v-alpha", "-o", "/nonexistent/file.json"], "/nonexistent/file.json"),
    ],
)
def test_an_error_has_one_clear_message_and_exit_code_1(database_url: str, arguments: list[str], message: str) -> None:
    run_cli("user", "add", "ada", "--role", "curator", "--database", database_url)
    run_cli("user", "add", "root", "--role", "admin", "--database", database_url)
    result = run_cli(*arguments, "--database", database_url)
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["serve", "--port", "many"], ["import"], ["export", "--format", "pdf"],
     ["user", "add", "x", "--role", "king"], ["show"]],
)  # fmt: skip
def test_wrong_usage_gets_exit_code_2(arguments: list[str], database_url: str) -> None:
    result = run_cli(*arguments, LEXARIUM_DATABASE=database_url)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEXARIUM_PORT", "http"),
        ("LEXARIUM_PORT", "70000"),
        ("LEXARIUM_WORKERS", "0"),
        ("LEXARIUM_LOG", "xml"),
        ("LEXARIUM_DATABASE", "mysql://x"),
        ("LEXARIUM_DATABASE", "nonsense"),
        ("LEXARIUM_DATABASE", "sqlite://"),
        ("LEXARIUM_DATABASE", "sqlite:////nonexistent/folder/x.db"),
        ("LEXARIUM_DATABASE", "postgresql://127.0.0.1:1/x"),
        ("LEXARIUM_DATABASE", "postgresql://host:port:port/x"),
    ],
)
def test_an_invalid_setting_is_reported(name: str, value: str, tmp_path: Path) -> None:
    variables = {"LEXARIUM_DATABASE": f"sqlite:///{tmp_path}/x.db", name: value}
    result = run_cli("serve", "--port", "0", **variables) if name != "LEXARIUM_PORT" else run_cli("serve", **variables)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1, result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "command", [["check"], ["export", "--format", "v-alpha"], ["show", "x"], ["token", "list"], ["user", "list"]]
)
def test_read_only_commands_do_not_create_a_catalogue(command: list[str], tmp_path: Path) -> None:
    result = run_cli(*command, "--database", f"sqlite:///{tmp_path}/mistyped.db")
    assert result.returncode == 1
    assert "mistyped.db" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_rejected_import_is_reported_as_json(database_url: str, tmp_path: Path) -> None:
    path = tmp_path / "concept.json"
    path.write_text('[{"id": "trm_a", "name": 1}]')
    result = run_cli("import", path, "--json", "--database", database_url)
    assert result.returncode == 1
    assert "name of trm_a" in json.loads(result.stdout)["problems"][0]["what"]


def test_an_export_follows_symlinks_and_writes_into_pipes(
    database_url: str, tmp_path: Path, sample_paths: list[Path]
) -> None:
    run_cli("import", *sample_paths, "--database", database_url)
    real, link, pipe = tmp_path / "real.json", tmp_path / "link.json", tmp_path / "pipe"
    link.symlink_to(real)
    run_cli("export", "--format", "v-alpha", "-o", link, "--database", database_url)
    assert link.is_symlink()
    os.mkfifo(pipe)
    with (tmp_path / "copy.json").open("wb") as copy:
        reader = subprocess.Popen(["cat", pipe], stdout=copy)
        run_cli("export", "--format", "v-alpha", "-o", pipe, "--database", database_url)
        assert reader.wait(DEADLINE_SECONDS) == 0
    assert pipe.is_fifo()
    assert (tmp_path / "copy.json").read_bytes() == real.read_bytes()


def test_no_password_is_printed() -> None:
    result = run_cli("check", "--database", "postgresql+psycopg://ada:s3cret@localhost/x")
    assert result.returncode == 1
    assert "s3cret" not in result.stderr + result.stdout


def test_a_port_in_use_is_reported(database_url: str) -> None:
    with socket.socket() as used_socket:
        used_socket.bind(("127.0.0.1", 0))
        used_socket.listen()
        port = used_socket.getsockname()[1]
        result = run_cli("serve", "--port", port, "--database", database_url)
    assert result.returncode == 1
    assert str(port) in result.stderr
    assert "Traceback" not in result.stderr


def test_a_file_that_is_not_a_database_is_reported_and_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are notes, not a database. " * 100)
    before = path.read_bytes()
    result = run_cli("serve", "--port", "0", "--database", f"sqlite:///{path}")
    assert result.returncode == 1
    assert "notes.txt" in result.stderr
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_rejected_and_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE things (id)")
    before = path.read_bytes()
    result = run_cli("migrate", "--database", f"sqlite:///{path}")
    assert result.returncode == 1
    assert "is not a Lexarium database" in result.stderr
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_sample_is_loaded_only_into_an_empty_catalogue(database_url: str) -> None:
    with Server(database_url, "--sample") as server:
        assert len(server.get("/api/v-alpha/concept").json) >= 100
        assert len(server.get("/api/v-alpha/task").json) >= 60
        assert len(server.get("/api/v-alpha/disorder").json) >= 40
        etag = server.get("/api/v-alpha/concept").headers["etag"]
    with Server(database_url, "--sample") as server:
        assert server.get("/api/v-alpha/concept").headers["etag"] == etag


def test_import_export_show_and_check_work_together(url: str, sample_paths: list[Path], tmp_path: Path) -> None:
    result = run_cli("import", *sample_paths, "--json", "--database", url)
    report = json.loads(result.stdout)
    assert report["changed"]
    assert report["created"]["concept"] >= 100
    second_result = run_cli("import", *sample_paths, "--database", url)
    assert "Nothing changed." in second_result.stdout
    exported = json.loads(run_cli("export", "--database", url).stdout)
    assert len(exported) == sum(report["created"].values())
    path = tmp_path / "tasks.json"
    run_cli("export", "--format", "v-alpha", "--collection", "task", "-o", path, "--database", url)
    tasks = json.loads(path.read_text())
    assert {task["type"] for task in tasks} == {"task"}
    assert list(tmp_path.iterdir()) == [path]
    show_result = run_cli("show", tasks[0]["id"], "--json", "--database", url)
    shown = json.loads(show_result.stdout)
    assert {name: shown[name] for name in ("id", "name", "collection")} == {
        "id": tasks[0]["id"],
        "name": tasks[0]["name"],
        "collection": "task",
    }
    assert tasks[0]["name"] in run_cli("show", tasks[0]["id"], "--database", url).stdout
    assert run_cli("check", "--database", url).returncode == 0


def test_an_export_of_a_release_equals_the_export_at_its_time(
    url: str, sample_paths: list[Path], tmp_path: Path
) -> None:
    run_cli("import", *sample_paths, "--database", url)
    exported = run_cli("export", "--format", "v-alpha", "--database", url).stdout
    with Server(url) as server:
        curator = {"Authorization": f"Bearer {server.create_token('curator')}", "Content-Type": "application/json"}
        response = server.request("POST", "/api/v1/releases", curator, json.dumps({"name": "2026.1"}))
        assert response.status == 201
        first_id, other = (record["id"] for record in server.get("/api/v-alpha/concept").json[:2])
        merged = server.request(
            "POST", f"/api/v1/concept/{first_id}/merge", {**curator, "If-Match": '"1"'}, json.dumps({"into": other})
        )
        assert merged.status == 200, merged.body
    assert run_cli("export", "--format", "v-alpha", "--database", url).stdout != exported
    assert run_cli("export", "--format", "v-alpha", "--release", "2026.1", "--database", url).stdout == exported
    revision = str(response.json["revision"])
    assert run_cli("export", "--format", "v-alpha", "--as-of", revision, "--database", url).stdout == exported
    for invalid_options in (["--release", "none"], ["--as-of", "999999"], ["--release", "2026.1", "--as-of", "1"]):
        result = run_cli("export", "--format", "v-alpha", *invalid_options, "--database", url)
        assert result.returncode != 0
        assert result.stderr.startswith("Error: ")
        assert "Traceback" not in result.stderr


def test_check_finds_changes_made_outside_of_the_application(
    database_url: str, tmp_path: Path, sample_paths: list[Path]
) -> None:
    run_cli("import", *sample_paths, "--database", database_url)
    breaks = {
        "UPDATE record SET name = 'other' WHERE rowid = 1": "has wrong rendered JSON",
        "UPDATE record SET version = 9 WHERE rowid = 2": "version 9 of",
        "DELETE FROM record WHERE rowid = 3": "in the log but not",
        "DELETE FROM relation WHERE relation = 'ISA'": "differs from the change log",
        "DELETE FROM change WHERE seq = 4": "is not in the log",
        "UPDATE catalogue SET revision = 5": "revision 5",
        "UPDATE record SET body = x'7b' WHERE rowid = 7": "cannot be read",
    }
    with sqlite3.connect(tmp_path / "catalogue.db") as file:
        for statement in breaks:
            file.execute(statement)
    result = run_cli("check", "--json", "--database", database_url)
    assert result.returncode == 1
    problems = " | ".join(json.loads(result.stdout)["problems"])
    for sign in breaks.values():
        assert sign in problems


def test_a_long_import_shows_its_progress_on_a_terminal(database_url: str, sample_paths: list[Path]) -> None:
    output = run_in_terminal("import", *sample_paths, "--database", database_url)
    assert "reading" in output
    assert "writing" in output
    assert "100%" in output


def test_a_closed_pipe_ends_an_export_silently(database_url: str, sample_paths: list[Path]) -> None:
    run_cli("import", *sample_paths, "--database", database_url)
    command = f"{sys.executable} -m lexarium export --format v-alpha --database {database_url} | head -c 10"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr
    assert result.stderr == ""


def test_the_log_has_one_json_object_per_line(database_url: str) -> None:
    with Server(database_url) as server:
        server.get("/")
    lines = [json.loads(line) for line in server.log.splitlines()]
    assert lines
    assert all({"at", "level", "message"} <= set(line) for line in lines)


def test_the_home_page_describes_the_catalogue(sample_url: DatabaseUrlFactory) -> None:
    with Server(sample_url("sqlite"), LEXARIUM_TITLE="<b>Ours</b>") as server:
        page = server.get("/")
        assert page.status == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        text = page.body.decode()
        assert "&lt;b&gt;Ours&lt;/b&gt;" in text
        assert "/api/v1/search" in text
        assert server.get("/static/style.css").status == 200
        assert server.get("/api/v1").json["revision"] > 0
        assert server.get("/api").json["versions"] == {"v-alpha": "/api/v-alpha", "v1": "/api/v1"}


@pytest.mark.parametrize("command", ["serve", "check"])
def test_an_unknown_setting_is_rejected_with_a_suggestion(database_url: str, command: str) -> None:
    result = run_cli(command, "--database", database_url, LEXARIUM_REED="token", LEXARIUM_XYZZY="1")
    assert result.returncode == 1
    text = " ".join(result.stderr.split())
    assert "Unknown setting LEXARIUM_REED; did you mean LEXARIUM_READ? Unknown setting LEXARIUM_XYZZY." in text


def test_an_invalid_setting_value_is_rejected_with_its_variable(database_url: str) -> None:
    result = run_cli("serve", "--database", database_url, LEXARIUM_READ="TOKEN")
    assert result.returncode == 1
    assert "(LEXARIUM_READ) must be one of open, token" in " ".join(result.stderr.split())


def test_variables_of_tests_and_benchmarks_are_accepted(database_url: str) -> None:
    assert (
        run_cli(
            "migrate", "--database", database_url, LEXARIUM_TEST_POSTGRES="x", LEXARIUM_REAL_CATALOGUE="x"
        ).returncode
        == 0
    )


def test_a_finished_command_leaves_only_the_database_file(tmp_path: Path) -> None:
    arguments = ["user", "add", "bob", "--role", "admin", "--database", f"sqlite:///{tmp_path}/catalogue.db"]
    subprocess.run([sys.executable, "-m", "lexarium", *arguments], check=True, capture_output=True)
    assert [path.name for path in tmp_path.iterdir()] == ["catalogue.db"]


@pytest.mark.parametrize(("read_setting", "read_access"), [("open", "public"), ("token", "token required")])
def test_a_server_logs_its_read_access_at_start(database_url: str, read_setting: str, read_access: str) -> None:
    with Server(database_url, LEXARIUM_READ=read_setting) as server:
        assert f", read access: {read_access} (press Ctrl-C to stop)" in server.log


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.full)])
def test_a_stopped_server_exits_with_0(database_url: str, workers: str) -> None:
    with SpawnedServer(database_url, "--workers", workers) as server:
        assert server.get("/healthz").status == 200
        server.stop()
        assert server.returncode == 0
        assert "Traceback" not in server.log
