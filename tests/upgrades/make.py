"""Create the databases of earlier versions that `test_upgrade` upgrades: python -m tests.upgrades.make VERSION COMMIT

The code of that commit creates the database by its own commands and over HTTP. The results are its tables as SQL,
and the responses of its server. Existing ones are not created again: ids and times would differ.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
STAMP = "2020-01-02T03:04:05"
LONG = "a very long name " * 124
TERMS: dict[str, dict[str, Any]] = {
    "trm_1": {"name": "attention", "alias": "attending, focus", "id_concept_class": "ctp_1"},
    "trm_2": {"name": "Aufmerksamkeit für Köpfe", "definition_text": 'Line one\r\nline "two"\t<b>&amp;</b> 🧠'},
    "trm_3": {"name": "attention"},
    "trm_4": {"name": LONG},
}


def build_term(record_id: str, **fields: Any) -> dict[str, Any]:
    """Build a record as a v-alpha server lists it."""
    defaults = {"id": record_id, "alias": "", "definition_text": "", "id_concept_class": "", "id_user": "usr_1"}
    times = {
        "event_stamp": STAMP,
        "def_event_stamp": STAMP,
        "creation_time": 1577934245000,
        "last_updated": 1577934245000,
    }
    return {**defaults, "def_id": f"def_{record_id}", "def_id_user": "usr_2", **times, **fields}


def write_import_files(folder: Path) -> list[Path]:
    """Write import files: all v-alpha collections, with relations."""
    concepts = [
        {**build_term(record_id, **fields), "type": "concept", "relationships": []}
        for record_id, fields in TERMS.items()
    ]
    concepts[1]["relationships"] = [{"id": "trm_1", "name": "x", "relationship": "KINDOF", "direction": "parent"}]
    asserts = [{"concept_id": "trm_1", "name": "x", "relationship": "ASSERTS"}]
    tasks = [{**build_term("tsk_1", name="n-back"), "type": "task", "concepts": asserts, "contrasts": []}]
    disorder_fields = {
        "definition": "d",
        "id_protocol": "icd",
        "id_user": "usr_1",
        "event_stamp": STAMP,
        "flag_for_curator": 1,
    }
    paths = []
    for name, records in {
        "concept": concepts,
        "task": tasks,
        "disorder": [{"id": "dso_1", "name": "dyslexia", **disorder_fields}],
    }.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(records))
        paths.append(path)
    return paths


def main(version: str, commit: str) -> None:
    """Create the SQL and the responses of one version."""
    with TemporaryDirectory() as folder:
        code, file = Path(folder) / "code", Path(folder) / "old.db"
        archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True).stdout
        code.mkdir()
        subprocess.run(["tar", "-x", "-C", code], input=archive, check=True)
        old_release = OldRelease(code / "src", file)
        old_release.run("import", *map(str, write_import_files(Path(folder))))
        old_release.run("user", "add", "Ada", "--role", "admin")
        token = old_release.run("token", "create", "Ada").strip()
        with old_release.run_server() as port:
            apply_edits(port, token)
            responses = {path: get(port, path) for path in PATHS}
        with closing(sqlite3.connect(file)) as database:
            assert database.execute("SELECT version_num FROM alembic_version").fetchone() == (version,)
            (FOLDER / f"{version}.sql").write_text("\n".join(database.iterdump()) + "\n")
        (FOLDER / f"{version}.json").write_text(json.dumps(responses, indent=1, ensure_ascii=False) + "\n")


PATHS = [
    *(f"/api/v-alpha/{name}" for name in ("concept", "task", "disorder", "search")),
    "/api/v-alpha/concept?id=trm_1",
    "/api/v-alpha/concept?name=ATTENTION",
    "/api/v-alpha/task?id=tsk_1",
    "/api/v-alpha/disorder?id=dso_1",
]


def apply_edits(port: int, token: str) -> None:
    """Edit the catalogue, as far as the server of that version allows."""
    record = {"name": "made by a person", "definition_text": "d", "alias": "one; two"}
    send(port, token, "POST", "/api/v-alpha/concept", record)
    send(port, token, "POST", "/api/v-alpha/disorder", {"name": "made, too"})
    send(port, token, "PATCH", "/api/v1/concept/trm_3", {"definition_text": "edited"})
    send(port, token, "DELETE", "/api/v1/concept/trm_4", None)
    send(port, token, "POST", "/api/v1/releases", {"name": "2026.1", "note": "first"})
    send(port, token, "GET", "/api/v1/releases/2026.1/files/obo", None)
    send(port, token, "POST", "/api/v1/concept/trm_1/comments", {"text": "a comment"})
    send(port, token, "POST", "/api/v1/proposals", {"collection": "concept", "change": {"name": "proposed"}})


def send(port: int, token: str, method: str, path: str, body: object) -> None:
    """Send a write; an older version may refuse it."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "If-Match": '"1"'}
    connection.request(method, path, json.dumps(body), headers)
    response = connection.getresponse()
    print(response.status, method, path)
    response.read()
    connection.close()


def get(port: int, path: str) -> str:
    """Return the body of a response."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    response = connection.getresponse()
    assert response.status == 200, path
    body = response.read().decode()
    connection.close()
    return body


class OldRelease:
    """The `lexarium` commands of an earlier version."""

    def __init__(self, source: Path, file: Path) -> None:
        self._command = [sys.executable, "-m", "lexarium"]
        self._environment = {**os.environ, "PYTHONPATH": str(source), "LEXARIUM_DATABASE": f"sqlite:///{file}"}

    def run(self, *arguments: str) -> str:
        """Run a command and return its output."""
        command = [*self._command, *arguments]
        return subprocess.run(command, env=self._environment, stdout=subprocess.PIPE, text=True, check=True).stdout

    @contextmanager
    def run_server(self) -> Iterator[int]:
        """Run a server and yield its port."""
        command = [*self._command, "serve", "--port", "0"]
        with subprocess.Popen(command, env=self._environment, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            try:
                yield next(
                    int(match[1]) for line in process.stderr if (match := re.search(r"127\.0\.0\.1:(\d+)", line))
                )
            finally:
                process.terminate()


if __name__ == "__main__":
    main(*sys.argv[1:])
