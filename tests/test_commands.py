"""The commands, as an operator runs them."""

import json
import os
import pty
import re
import select
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server import Server, SpawnedServer, run

LISTS = (["user", "list"], ["token", "list"])


@pytest.fixture
def at(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/catalogue.db"


def test_the_default_database_is_a_file_in_the_working_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lexarium", "migrate"]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("LEXARIUM_")}
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, env=variables)
    assert (tmp_path / "lexarium.db").is_file()


def test_a_variable_names_the_database_and_an_option_goes_first(tmp_path: Path) -> None:
    assert run("migrate", LEXARIUM_DATABASE=f"sqlite:///{tmp_path}/by-variable.db").returncode == 0
    variable = f"sqlite:///{tmp_path}/unused.db"
    assert (
        run("migrate", "--database", f"sqlite:///{tmp_path}/by-option.db", LEXARIUM_DATABASE=variable).returncode == 0
    )
    assert {path.name for path in tmp_path.glob("*.db")} == {"by-variable.db", "by-option.db"}


def test_less_may_not_be_held_of_bodies_than_the_largest_has(at: str) -> None:
    refused = run("serve", "--port", "0", "--database", at, LEXARIUM_BODIES_MB="63")
    assert refused.returncode == 1
    assert "The setting bodies_mb (LEXARIUM_BODIES_MB) must be at least 64" in refused.stderr
    refused = run("serve", "--database", at, LEXARIUM_BODIES_MB="64", LEXARIUM_BODY_KB="65537")
    assert "The setting bodies_mb (LEXARIUM_BODIES_MB) must be at least 65" in refused.stderr


def test_token_create_prints_the_token_alone(url: str) -> None:
    assert run("user", "add", "Ada [bold]", "--role", "curator", "--database", url).stdout.startswith("usr_")
    made = run("token", "create", "Ada [bold]", "--database", url)
    assert made.returncode == 0
    assert len(made.stdout.split()) == 1
    assert made.stdout.strip() not in made.stderr
    listed = json.loads(run("token", "list", "--json", "--database", url).stdout)
    assert listed[0]["account"] == "Ada [bold]"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", listed[0]["created"])
    assert made.stdout.strip() not in json.dumps(listed)


def test_a_password_is_read_from_standard_input(at: str) -> None:
    run("user", "add", "ada", "--role", "admin", "--database", at)
    command = [sys.executable, "-m", "lexarium", "user", "password", "ada", "--database", at]
    for given, code in (("a long enough one", 0), ("short", 1)):
        result = subprocess.run(command, input=given + "\n", capture_output=True, text=True, check=False)
        assert result.returncode == code
        assert given not in result.stdout + result.stderr


def test_accounts_are_listed_changed_and_erased(url: str) -> None:
    made = {
        name: run("user", "add", name, "--role", role, "--database", url).stdout.strip()
        for name, role in (("Grace [red]", "admin"), ("Ada", "curator"))
    }
    secret = run("token", "create", "Ada", "--label", "Ada's laptop", "--database", url).stdout.strip()
    assert "Grace [red]" in run("user", "list", "--database", url).stdout
    assert run("user", "role", "Ada", "admin", "--database", url).returncode == 0
    listed = json.loads(run("user", "list", "--json", "--database", url).stdout)
    assert [(each["name"], each["role"]) for each in listed] == [("Ada", "admin"), ("Grace [red]", "admin")]
    assert run("user", "role", "Ada", "king", "--database", url).returncode == 2
    assert run("user", "remove", "Ada", "--database", url).returncode == 0
    whole = json.dumps([json.loads(run(*what, "--json", "--database", url).stdout) for what in LISTS])
    assert "Ada" not in whole
    assert made["Ada"] in whole
    for again in (["user", "remove", made["Ada"]], ["token", "create", made["Ada"]], ["user", "password", made["Ada"]]):
        command = [sys.executable, "-m", "lexarium", *again, "--database", url]
        refused = subprocess.run(command, input="a long enough one\n", capture_output=True, text=True, check=False)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "erased" in refused.stderr
    with Server(url) as server:
        assert server.get("/api/v1/me", Authorization=f"Bearer {secret}").status == 401


def test_a_list_on_a_narrow_terminal_cuts_nothing_off(at: str) -> None:
    run("user", "add", "Ada Lovelace of London", "--role", "admin", "--database", at)
    run("token", "create", "Ada Lovelace of London", "--days", "3", "--label", "her machine", "--database", at)
    for what in LISTS:
        shown = on_terminal(*what, "--database", at)
        assert "Lovelace" in shown
        assert "…" not in shown


def test_no_secret_is_kept(at: str, tmp_path: Path) -> None:
    run("user", "add", "ada", "--role", "admin", "--database", at)
    secret = run("token", "create", "ada", "--database", at).stdout.strip()
    assert secret.encode() not in (tmp_path / "catalogue.db").read_bytes()


def test_a_tokens_role_is_no_higher_than_its_accounts(at: str) -> None:
    run("user", "add", "ada", "--role", "contributor", "--database", at)
    made = run("token", "create", "ada", "--role", "admin", "--database", at)
    assert (made.returncode, made.stdout) == (1, "")
    assert "contributor" in made.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["user", "add", "ada", "--role", "curator"], "already"),
        (["user", "add", " ", "--role", "curator"], "empty"),
        (["user", "role", "nobody", "admin"], "nobody"),
        (["user", "role", "root", "curator"], "last admin"),
        (["user", "remove", "nobody"], "nobody"),
        (["user", "remove", "root"], "last admin"),
        (["token", "create", "nobody"], "nobody"),
        (["token", "revoke", "tok_none"], "tok_none"),
        (["show", "trm_none"], "trm_none"),
        (["import", "absent.json"], "absent.json"),
        (["export", "--format", "v-alpha", "-o", "/nonexistent/file.json"], "/nonexistent/file.json"),
    ],
)
def test_a_mistake_gets_one_clear_sentence_and_exit_code_1(at: str, arguments: list[str], said: str) -> None:
    run("user", "add", "ada", "--role", "curator", "--database", at)
    run("user", "add", "root", "--role", "admin", "--database", at)
    result = run(*arguments, "--database", at)
    assert result.returncode == 1
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["serve", "--port", "many"], ["import"], ["export", "--format", "pdf"],
     ["user", "add", "x", "--role", "king"], ["import", "x.json", "--collection", "animals"], ["show"]],
)  # fmt: skip
def test_wrong_usage_gets_exit_code_2(arguments: list[str], at: str) -> None:
    result = run(*arguments, LEXARIUM_DATABASE=at)
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
def test_a_wrong_setting_is_named(name: str, value: str, tmp_path: Path) -> None:
    variables = {"LEXARIUM_DATABASE": f"sqlite:///{tmp_path}/x.db", name: value}
    result = run("serve", "--port", "0", **variables) if name != "LEXARIUM_PORT" else run("serve", **variables)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1, result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "command", [["check"], ["export", "--format", "v-alpha"], ["show", "x"], ["token", "list"], ["user", "list"]]
)
def test_a_command_that_only_reads_makes_no_catalogue(command: list[str], tmp_path: Path) -> None:
    result = run(*command, "--database", f"sqlite:///{tmp_path}/mistyped.db")
    assert result.returncode == 1
    assert "mistyped.db" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_refused_import_is_told_in_json_too(at: str, tmp_path: Path) -> None:
    path = tmp_path / "concept.json"
    path.write_text('[{"id": "trm_a", "name": 1}]')
    result = run("import", path, "--json", "--database", at)
    assert result.returncode == 1
    assert "name of trm_a" in json.loads(result.stdout)["problems"][0]["what"]


def test_an_export_goes_where_a_link_points_and_into_a_pipe(at: str, tmp_path: Path, sample_paths: list[Path]) -> None:
    run("import", *sample_paths, "--database", at)
    real, link, pipe = tmp_path / "real.json", tmp_path / "link.json", tmp_path / "pipe"
    link.symlink_to(real)
    run("export", "--format", "v-alpha", "-o", link, "--database", at)
    assert link.is_symlink()
    os.mkfifo(pipe)
    with (tmp_path / "copy.json").open("wb") as copy:
        reader = subprocess.Popen(["cat", pipe], stdout=copy)
        run("export", "--format", "v-alpha", "-o", pipe, "--database", at)
        assert reader.wait(30) == 0
    assert pipe.is_fifo()
    assert (tmp_path / "copy.json").read_bytes() == real.read_bytes()


def test_no_password_is_printed() -> None:
    result = run("check", "--database", "postgresql+psycopg://ada:s3cret@localhost/x")
    assert result.returncode == 1
    assert "s3cret" not in result.stderr + result.stdout


def test_a_port_in_use_is_named(at: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("serve", "--port", port, "--database", at)
    assert result.returncode == 1
    assert str(port) in result.stderr
    assert "Traceback" not in result.stderr


def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are notes, not a database. " * 100)
    before = path.read_bytes()
    result = run("serve", "--port", "0", "--database", f"sqlite:///{path}")
    assert result.returncode == 1
    assert "notes.txt" in result.stderr
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE things (id)")
    before = path.read_bytes()
    result = run("migrate", "--database", f"sqlite:///{path}")
    assert result.returncode == 1
    assert "not one of Lexarium's" in result.stderr
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_sample_is_loaded_only_into_an_empty_catalogue(at: str) -> None:
    with Server(at, "--sample") as server:
        assert len(server.get("/api/v-alpha/concept").json) >= 100
        assert len(server.get("/api/v-alpha/task").json) >= 60
        assert len(server.get("/api/v-alpha/disorder").json) >= 40
        etag = server.get("/api/v-alpha/concept").headers["etag"]
    with Server(at, "--sample") as server:
        assert server.get("/api/v-alpha/concept").headers["etag"] == etag


def test_import_export_show_and_check_work_together(url: str, sample_paths: list[Path], tmp_path: Path) -> None:
    result = run("import", *sample_paths, "--json", "--database", url)
    report = json.loads(result.stdout)
    assert report["changed"]
    assert report["created"]["concept"] >= 100
    again = run("import", *sample_paths, "--database", url)
    assert "Nothing changed." in again.stdout
    whole = json.loads(run("export", "--database", url).stdout)
    assert len(whole) == sum(report["created"].values())
    path = tmp_path / "tasks.json"
    run("export", "--format", "v-alpha", "--collection", "task", "-o", path, "--database", url)
    tasks = json.loads(path.read_text())
    assert {task["type"] for task in tasks} == {"task"}
    assert list(tmp_path.iterdir()) == [path]
    shown = run("show", tasks[0]["id"], "--json", "--database", url)
    assert json.loads(shown.stdout) == tasks[0]
    assert tasks[0]["name"] in run("show", tasks[0]["id"], "--database", url).stdout
    assert run("check", "--database", url).returncode == 0


def test_an_export_of_a_release_is_what_was_exported_when_it_was_named(
    url: str, sample_paths: list[Path], tmp_path: Path
) -> None:
    run("import", *sample_paths, "--database", url)
    then = run("export", "--format", "v-alpha", "--database", url).stdout
    with Server(url) as server:
        curator = {"Authorization": f"Bearer {server.token('curator')}", "Content-Type": "application/json"}
        named = server.request("POST", "/api/v1/releases", curator, json.dumps({"name": "2026.1"}))
        assert named.status == 201
        one, other = (record["id"] for record in server.get("/api/v-alpha/concept").json[:2])
        merged = server.request(
            "POST", f"/api/v1/concept/{one}/merge", {**curator, "If-Match": '"1"'}, json.dumps({"into": other})
        )
        assert merged.status == 200, merged.body
    assert run("export", "--format", "v-alpha", "--database", url).stdout != then
    assert run("export", "--format", "v-alpha", "--release", "2026.1", "--database", url).stdout == then
    revision = str(named.json["revision"])
    assert run("export", "--format", "v-alpha", "--as-of", revision, "--database", url).stdout == then
    for wrong in (["--release", "none"], ["--as-of", "999999"], ["--release", "2026.1", "--as-of", "1"]):
        refused = run("export", "--format", "v-alpha", *wrong, "--database", url)
        assert refused.returncode != 0
        assert refused.stderr.startswith("Error: ")
        assert "Traceback" not in refused.stderr


def test_check_finds_what_was_changed_behind_its_back(at: str, tmp_path: Path, sample_paths: list[Path]) -> None:
    run("import", *sample_paths, "--database", at)
    breaks = {
        "UPDATE record SET name = 'other' WHERE rowid = 1": "not rendered",
        "UPDATE record SET version = 9 WHERE rowid = 2": "version 9 of",
        "DELETE FROM record WHERE rowid = 3": "in the log but not",
        "DELETE FROM relation WHERE relation = 'ISA'": "not what the log says",
        "DELETE FROM change WHERE seq = 4": "is not in the log",
        "UPDATE catalogue SET revision = 5": "revision 5",
        "UPDATE record SET body = x'7b' WHERE rowid = 7": "cannot be read",
    }
    with sqlite3.connect(tmp_path / "catalogue.db") as file:
        for statement in breaks:
            file.execute(statement)
    result = run("check", "--json", "--database", at)
    assert result.returncode == 1
    problems = " | ".join(json.loads(result.stdout)["problems"])
    for sign in breaks.values():
        assert sign in problems


def on_terminal(*arguments: object) -> str:
    """What a command that succeeds shows on a terminal of 80 columns."""
    main, side = pty.openpty()
    command = [sys.executable, "-m", "lexarium", *map(str, arguments)]
    process = subprocess.Popen(command, stderr=side, stdout=side, env={**os.environ, "TERM": "xterm-256color"})
    os.close(side)
    seen = b""
    while select.select([main], [], [], 30)[0]:
        try:
            piece = os.read(main, 65536)
        except OSError:  # the other side is closed
            break
        seen += piece
        if not piece:
            break
    os.close(main)
    assert process.wait(30) == 0
    return seen.decode()


def test_a_long_import_shows_its_progress_on_a_terminal(at: str, sample_paths: list[Path]) -> None:
    seen = on_terminal("import", *sample_paths, "--database", at)
    assert "reading" in seen
    assert "writing" in seen
    assert "100%" in seen


def test_a_closed_pipe_ends_an_export_quietly(at: str, sample_paths: list[Path]) -> None:
    run("import", *sample_paths, "--database", at)
    command = f"{sys.executable} -m lexarium export --format v-alpha --database {at} | head -c 10"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr
    assert result.stderr == ""


def test_sigterm_ends_the_server_in_order(at: str) -> None:
    server = SpawnedServer(at, "--workers", "2")
    with server:
        assert server.get("/healthz").status == 200
    assert "Traceback" not in server.log


def test_logs_are_one_json_object_a_line(at: str) -> None:
    with Server(at) as server:
        server.get("/")
    lines = [json.loads(line) for line in server.log.splitlines()]
    assert lines
    assert all({"at", "level", "message"} <= set(line) for line in lines)


def test_the_home_page_tells_what_the_catalogue_holds(at: str) -> None:
    with Server(at, "--sample", LEXARIUM_TITLE="<b>Ours</b>") as server:
        page = server.get("/")
        assert page.status == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        text = page.body.decode()
        assert "&lt;b&gt;Ours&lt;/b&gt;" in text
        assert "/api/v-alpha/search" in text
        assert server.get("/static/style.css").status == 200
        assert server.get("/api/v1").json["revision"] > 0
        assert server.get("/api").json["versions"] == {"v-alpha": "/api/v-alpha", "v1": "/api/v1"}


@pytest.mark.parametrize("command", ["serve", "check"])
def test_a_variable_that_is_no_setting_is_refused_and_the_nearest_named(at: str, command: str) -> None:
    refused = run(command, "--database", at, LEXARIUM_REED="token", LEXARIUM_XYZZY="1")
    assert refused.returncode == 1
    told = " ".join(refused.stderr.split())
    assert "LEXARIUM_REED is no setting; did you mean LEXARIUM_READ? LEXARIUM_XYZZY is no setting." in told


def test_a_value_that_a_setting_cannot_have_is_refused_with_its_variable(at: str) -> None:
    refused = run("serve", "--database", at, LEXARIUM_READ="TOKEN")
    assert refused.returncode == 1
    assert "(LEXARIUM_READ) must be one of open, token" in " ".join(refused.stderr.split())


def test_variables_of_tests_and_benchmarks_are_no_mistake(at: str) -> None:
    assert run("migrate", "--database", at, LEXARIUM_TEST_POSTGRES="x", LEXARIUM_REAL_CATALOGUE="x").returncode == 0


def test_a_command_that_ends_leaves_all_in_the_one_file(tmp_path: Path) -> None:
    arguments = ["user", "add", "bob", "--role", "admin", "--database", f"sqlite:///{tmp_path}/catalogue.db"]
    subprocess.run([sys.executable, "-m", "lexarium", *arguments], check=True, capture_output=True)
    assert [path.name for path in tmp_path.iterdir()] == ["catalogue.db"]


@pytest.mark.parametrize(("read", "readers"), [("open", "everyone"), ("token", "those who have a token")])
def test_a_server_tells_at_its_start_who_may_read(at: str, read: str, readers: str) -> None:
    with Server(at, LEXARIUM_READ=read) as server:
        assert f" to {readers} (Ctrl-C stops)" in server.log


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_that_is_told_to_end_has_not_failed(at: str, workers: str) -> None:
    with SpawnedServer(at, "--workers", workers) as server:
        assert server.get("/healthz").status == 200
        server.stop()
        assert server.returncode == 0
