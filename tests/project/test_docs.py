"""Documentation agrees with the program."""

import json
import re
import subprocess
import sys
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from lexarium import __version__
from lexarium.cli.main import COMMANDS, app
from lexarium.domain.schema.collections import RELATION_TYPES
from lexarium.services.access.permissions import REQUIRED_ROLE
from lexarium.settings import Settings, variable_name
from lexarium.web.valpha.resources import RESOURCES
from tests.support.server import Server

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [README, *(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))]


@cache
def list_commands() -> dict[str, set[str]]:
    """Return every command with its options."""
    group: Any = get_command(app)
    options_by_command = {}
    for name in COMMANDS:
        command = group.get_command(None, name)
        children = getattr(command, "commands", {})
        for full_name, subcommand in (
            {f"{name} {sub}": child for sub, child in children.items()}.items() if children else [(name, command)]
        ):
            options_by_command[full_name] = {
                option for parameter in subcommand.params for option in parameter.opts if option.startswith("-")
            }
    return options_by_command


def test_the_readme_opens_with_the_two_commands_and_a_first_curl() -> None:
    opening = README[:700]
    assert opening.index("make run") < opening.index("make test") < opening.index("curl ")


def test_every_command_is_in_the_readme_and_nothing_else() -> None:
    documented = set(
        re.findall(
            r"^\| `lexarium ([a-z]+(?: (?:add|apply|check|create|default|list|password|purge|remove|restore|revoke|role"
            r"|set|show|valpha))?)",
            README,
            re.MULTILINE,
        )
    )
    assert documented == set(list_commands())


def test_every_option_in_the_documents_exists() -> None:
    for document in DOCUMENTS:
        for line in document.splitlines():
            for spelt, options in list_commands().items():
                if f"`lexarium {spelt} " in line or f"`lexarium {spelt}`" in line:
                    assert set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", line)) <= options | {"-alpha"}, line


def test_every_setting_is_in_the_readme_with_its_default_and_its_help() -> None:
    documented = re.findall(r"^\| `(LEXARIUM_\w+)` \|(.*?)\| (?:`(.*?)` )?\| (.*) \|$", README, re.MULTILINE)
    rows = {row[0]: row for row in documented}
    assert set(rows) == {variable_name(setting) for setting in fields(Settings)}
    for setting in fields(Settings):
        _, _, default, words = rows[variable_name(setting)]
        assert default == str(setting.default)
        assert words.replace("`", "") == setting.metadata["help"]


def test_the_table_of_roles_is_the_one_that_is_enforced() -> None:
    documented = re.findall(r"^\| (\w+) \| (.+) \|$", (ROOT / "docs" / "roles.md").read_text(), re.MULTILINE)
    assert set(documented) == {(str(role), deed.value) for deed, role in REQUIRED_ROLE.items()}


def test_the_table_of_relations_is_the_registrys() -> None:
    documented = re.findall(
        r"^\| (\w+) \| ([A-Za-z_]+) \| (\w+) \|$", (ROOT / "docs" / "curating.md").read_text(), re.MULTILINE
    )
    assert sorted(set(documented) - {("collection", "relation", "to")}) == sorted(
        (source, relation_type.name, targets[0] if len(targets) == 1 else "any")
        for relation_type in RELATION_TYPES.values()
        for source, targets in relation_type.targets.items()
        if targets
    )


def test_the_limits_of_a_batch_are_those_that_are_held() -> None:
    text = (ROOT / "docs" / "curating.md").read_text()
    assert f"{Settings.batch_mb} MiB and {Settings.batch_lines:,} lines for a batch" in text


def test_every_variable_in_the_documents_is_a_setting() -> None:
    setting_names = {variable_name(setting) for setting in fields(Settings)} | {
        "LEXARIUM_TEST_POSTGRES",
        "LEXARIUM_TEST_NO_SKIPS",
        "LEXARIUM_REAL_CATALOGUE",
    }
    for document in DOCUMENTS:
        assert set(re.findall(r"LEXARIUM_[A-Z_]+[A-Z]", document)) <= setting_names


def test_every_address_in_the_readme_is_there() -> None:
    assert set(re.findall(r"`/api/v-alpha/(\w+)", README)) <= set(RESOURCES)


def test_the_readmes_first_curl_answers(tmp_path: Path) -> None:
    match = re.search(r'curl "(http://127.0.0.1:8000(/\S+))"', README)
    assert match
    with Server(f"sqlite:///{tmp_path}/sample.db", "--sample") as server:
        assert server.get(match.group(2)).json[0]["name"] == "working memory"


def test_the_readmes_way_to_write_works(tmp_path: Path) -> None:
    block = next(block for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) if "token create" in block)
    with Server(f"sqlite:///{tmp_path}/write.db") as server:
        script = block.replace("http://127.0.0.1:8000", f"http://127.0.0.1:{server.port}")
        script = script.replace("curl ", "curl -sS ").replace(". .venv/bin/activate", "")
        result = subprocess.run(
            ["bash", "-euc", script],
            env={"LEXARIUM_DATABASE": server.url, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(result.stdout.splitlines()[-1])["name"] == "mental time travel"
        assert len(server.get("/api/v-alpha/concept").json) == 1


def test_the_architecture_page_names_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    for path in (ROOT / "src" / "lexarium").rglob("*/__init__.py"):
        name = path.parent.name
        assert name == "versions" or re.search(rf"\b{name}\b", text), f"docs/architecture.md does not name {name}"


def test_every_link_between_documents_leads_somewhere() -> None:
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links {target}"


def test_the_changelog_has_the_version() -> None:
    assert re.search(rf"^## {re.escape(__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt", "requirements-lowest.txt"])
def test_requirements_are_locked_with_hashes_and_name_no_index(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert not re.search(r"^-", text, re.MULTILINE)
    pinned = re.findall(r"^[\w.\[\]-]+==", text, re.MULTILINE)
    assert pinned
    assert text.count("--hash=sha256:") >= len(pinned)


def test_no_text_of_the_real_catalogue_is_in_the_sample(real_catalogue: Path) -> None:
    sample_texts = {
        str(record.get("definition_text") or record.get("definition") or "").strip().casefold()
        for path in (ROOT / "src/lexarium/sample").glob("*.json")
        for record in json.loads(path.read_text())
    }
    for name in ("concept", "task", "disorder"):
        for record in json.loads((real_catalogue / f"{name}.json").read_text()):
            text = (record.get("definition_text") or record.get("definition") or "").strip().casefold()
            assert len(text) < 40 or text not in sample_texts
