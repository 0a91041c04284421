"""Whatever the umask: what a server and its commands make can be read by its owner alone."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.person import Person
from tests.server import Server
from tests.test_faults import create, found
from tests.waiting import wait_until

UMASKS = [0o022, pytest.param(0o000, marks=pytest.mark.full)]


class Masked(Server):
    """A server that is started with a umask."""

    def __init__(self, umask: int, url: str, *options: str, **variables: str) -> None:
        super().__init__(url, *options, **variables)
        self._umask = umask

    def _started(self) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "lexarium", *self._arguments]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=self._environment, umask=self._umask)


def execute(umask: int, *arguments: object, **variables: str) -> None:
    """Run a command to its end, with a umask."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEXARIUM_")}
    command = [sys.executable, "-m", "lexarium", *map(str, arguments)]
    subprocess.run(command, env=environment | variables, umask=umask, check=True, capture_output=True, timeout=60)


def modes(folder: Path) -> dict[str, str]:
    """The permissions of all that is in a folder, by path; a folder's path ends in a slash."""
    found = {path: path.lstat().st_mode for path in folder.rglob("*")}
    return {
        f"{path.relative_to(folder)}{'/' if stat.S_ISDIR(mode) else ''}": oct(stat.S_IMODE(mode))
        for path, mode in found.items()
    }


def open_to_others(folder: Path) -> dict[str, str]:
    """What in a folder has other permissions than a database has."""
    return {path: mode for path, mode in modes(folder).items() if mode != ("0o700" if path.endswith("/") else "0o600")}


@pytest.mark.parametrize("umask", UMASKS, ids=oct)
def test_what_a_server_makes_is_its_owners_alone(umask: int, tmp_path: Path) -> None:
    data, temporary = tmp_path / "data", tmp_path / "temporary"
    for folder in (data, temporary):
        folder.mkdir()
    url = f"sqlite:///{data}/catalogue.db"
    with Masked(umask, url, "--workers", "2", "--sample", TMPDIR=str(temporary)) as server:
        token = server.token("curator")
        assert create(server, token, "one").status == 201
        wait_until(found, server, "one")
        person = Person(server)
        person.sign_in("curator")
        body = '--x\r\nContent-Disposition: form-data; name="files"; filename="a.csv"\r\n\r\nid,name\r\n--x--\r\n'
        headers = {
            "Content-Type": "multipart/form-data; boundary=x",
            "Cookie": "; ".join(f"{name}={value}" for name, value in person.cookies.items()),
        }
        assert server.request("POST", "/import", headers, body).status == 303
        wait_until(lambda: any("figures" in path and path[-1].isdecimal() for path in modes(temporary)))
        made = [*modes(data), *modes(temporary)]
        for sign in ("-wal", "-shm", "-search/", "building.lock", "lexarium-uploads", "a.csv", "watchdog.lock"):
            assert any(sign in path for path in made), (sign, made)
        assert open_to_others(data) == {}
        assert open_to_others(temporary) == {}


@pytest.mark.parametrize("umask", UMASKS, ids=oct)
def test_what_commands_make_of_a_catalogue_is_its_owners_alone(umask: int, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    at = ("--database", f"sqlite:///{data}/catalogue.db")
    (tmp_path / "terms.csv").write_text("id,name\ntrm_1,one\n")
    execute(umask, "import", tmp_path / "terms.csv", "--collection", "concept", *at)
    execute(umask, "reindex", *at)
    execute(umask, "backup", data / "backup", *at)
    execute(umask, "restore", data / "backup", "--database", f"sqlite:///{data}/restored.db")
    with Masked(umask, f"sqlite:///{tmp_path}/source.db", "--sample") as source:
        execute(umask, "mirror", f"http://127.0.0.1:{source.port}", "--database", f"sqlite:///{data}/mirror.db")
    assert len(modes(data)) > 10
    assert open_to_others(data) == {}


def test_what_is_exported_to_a_file_has_the_permissions_that_its_owner_chose(tmp_path: Path) -> None:
    at = ("--database", f"sqlite:///{tmp_path}/catalogue.db")
    execute(0o022, "migrate", *at)
    execute(0o022, "export", "-o", tmp_path / "export.json", *at)
    assert modes(tmp_path)["export.json"] == "0o644"
