"""Built package."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_contains_all_files_that_the_service_needs(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    for path in (source / "lexarium").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert path.relative_to(source).as_posix() in names
    for ending in ("home.html", "style.css", "v0001_catalogue.py", "sample/concept.json"):
        assert any(name.endswith(ending) for name in names)


@pytest.mark.full
def test_the_wheel_works_without_the_source_tree(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path / "installed")
    script = (
        "import lexarium, sys; assert 'installed' in lexarium.__file__;"
        "from lexarium.store.maintenance.upgrade import open_database;"
        "from lexarium.services.transfer.sample import load_sample;"
        "print(load_sample(open_database('sqlite:///x.db')).created['concept'])"
    )
    command = [sys.executable, "-c", script]
    environment = {"PYTHONPATH": str(tmp_path / "installed")}
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert int(result.stdout) >= 100
