"""Files of compiled templates."""

from pathlib import Path

import pytest
from jinja2 import DictLoader, Environment

from lexarium.web.template_environment import _CompiledTemplates


def render(folder: Path) -> str:
    cache = _CompiledTemplates()
    cache.directory = str(folder)
    return (
        Environment(loader=DictLoader({"page": "text"}), bytecode_cache=cache, autoescape=True)
        .get_template("page")
        .render()
    )


@pytest.mark.parametrize("size", [0, 15, 25, 75])
def test_a_damaged_file_is_replaced(tmp_path: Path, size: int) -> None:
    assert render(tmp_path) == "text"
    [file] = tmp_path.iterdir()
    complete = file.read_bytes()
    file.write_bytes(complete[:size])
    assert render(tmp_path) == "text"
    assert len(file.read_bytes()) == len(complete)
