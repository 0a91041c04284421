"""Files created by a server or a command are readable by their owner only, whatever the umask."""

import stat
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.browserless_client import BrowserlessClient
from tests.support.fork_server import ForkedProcess
from tests.support.polling import DEADLINE_SECONDS, wait_until
from tests.support.server import Server, build_environment

UMASKS = [0o022, pytest.param(0o000, marks=pytest.mark.full)]


class UmaskServer(Server):
    """Server started with a umask."""

    def __init__(self, umask: int, url: str, *options: str, **variables: str) -> None:
        super().__init__(url, *options, **variables)
        self._umask = umask


def run_with_umask(umask: int, *arguments: object, **variables: str) -> None:
    """Run a command with a umask; it must succeed."""
    process = ForkedProcess([*map(str, arguments)], build_environment() | variables, umask=umask)
    _, errors = process.communicate(DEADLINE_SECONDS)
    assert process.returncode == 0, errors


def list_modes(folder: Path) -> dict[str, str]:
    """Return the permissions of everything in a folder, by path; folder paths end in a slash."""
    modes_by_path = {}
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # it was removed meanwhile
            modes_by_path[path] = path.lstat().st_mode
    return {
        f"{path.relative_to(folder)}{'/' if stat.S_ISDIR(mode) else ''}": oct(stat.S_IMODE(mode))
        for path, mode in modes_by_path.items()
    }


def find_wrong_modes(folder: Path) -> dict[str, str]:
    """Return the files and folders whose permissions are not those of a database."""
    return {
        path: mode for path, mode in list_modes(folder).items() if mode != ("0o700" if path.endswith("/") else "0o600")
    }


@pytest.mark.parametrize("umask", UMASKS, ids=oct)
def test_files_created_by_a_server_are_accessible_to_their_owner_only(umask: int, tmp_path: Path) -> None:
    data, temporary = tmp_path / "data", tmp_path / "temporary"
    for folder in (data, temporary):
        folder.mkdir()
    url = f"sqlite:///{data}/catalogue.db"
    with UmaskServer(umask, url, "--workers", "2", TMPDIR=str(temporary)) as server:
        token = server.create_token("curator")
        assert server.create_concept(token, "one").status == 201
        wait_until(server.finds, "one")
        person = BrowserlessClient(server)
        person.sign_in("curator")
        body = '--x\r\nContent-Disposition: form-data; name="files"; filename="a.csv"\r\n\r\nid,name\r\n--x--\r\n'
        headers = {
            "Content-Type": "multipart/form-data; boundary=x",
            "Cookie": "; ".join(f"{name}={value}" for name, value in person.cookies.items()),
        }
        assert server.request("POST", "/import", headers, body).status == 303
        wait_until(lambda: any("figures" in path and path[-1].isdecimal() for path in list_modes(temporary)))
        paths = [*list_modes(data), *list_modes(temporary)]
        for sign in ("-wal", "-shm", "-search/", "building.lock", "lexarium-uploads", "a.csv", "watchdog.lock"):
            assert any(sign in path for path in paths), (sign, paths)
        assert find_wrong_modes(data) == {}
        assert find_wrong_modes(temporary) == {}


@pytest.mark.full
@pytest.mark.parametrize("umask", UMASKS, ids=oct)
def test_files_created_by_commands_are_accessible_to_their_owner_only(umask: int, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    database_option = ("--database", f"sqlite:///{data}/catalogue.db")
    (tmp_path / "terms.csv").write_text("id,name\ntrm_1,one\n")
    run_with_umask(umask, "import", tmp_path / "terms.csv", "--collection", "concept", *database_option)
    run_with_umask(umask, "reindex", *database_option)
    run_with_umask(umask, "backup", data / "backup", *database_option)
    run_with_umask(umask, "restore", data / "backup", "--database", f"sqlite:///{data}/restored.db")
    with UmaskServer(umask, f"sqlite:///{tmp_path}/source.db", "--sample") as source:
        run_with_umask(umask, "mirror", f"http://127.0.0.1:{source.port}", "--database", f"sqlite:///{data}/mirror.db")
    assert len(list_modes(data)) > 10
    assert find_wrong_modes(data) == {}


def test_an_exported_file_has_the_permissions_of_the_umask(tmp_path: Path) -> None:
    database_option = ("--database", f"sqlite:///{tmp_path}/catalogue.db")
    run_with_umask(0o022, "migrate", *database_option)
    run_with_umask(0o022, "export", "-o", tmp_path / "export.json", *database_option)
    assert list_modes(tmp_path)["export.json"] == "0o644"
