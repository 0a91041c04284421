"""Documentation agrees with the program."""

import json
import os
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
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import Server

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
REFERENCE = ROOT / "docs" / "reference"
DOCUMENTS = [README, *(path.read_text() for path in sorted((ROOT / "docs").rglob("*.md")))]


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


def test_the_readme_has_a_screenshot_and_short_lines() -> None:
    screenshot = ROOT / "docs" / "images" / "term.png"
    assert f"]({screenshot.relative_to(ROOT)})" in README
    assert screenshot.stat().st_size < 300_000
    assert max(map(len, README.splitlines())) <= 100


def test_the_reference_lists_exactly_the_existing_commands() -> None:
    documented = set(
        re.findall(
            r"^\| `lexarium ([a-z]+(?: (?:add|apply|check|create|default|list|password|purge|remove|restore|revoke|role"
            r"|set|show|valpha))?)",
            (REFERENCE / "commands.md").read_text(),
            re.MULTILINE,
        )
    )
    assert documented == set(list_commands())


def test_every_option_in_the_documentation_exists() -> None:
    for document in DOCUMENTS:
        for line in document.splitlines():
            named = [
                options
                for spelt, options in list_commands().items()
                if f"`lexarium {spelt} " in line or f"`lexarium {spelt}`" in line
            ]
            if named:
                assert set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", line)) <= {"-alpha"}.union(*named), line


def test_every_setting_is_documented_with_its_default_and_help_text() -> None:
    page = (REFERENCE / "settings.md").read_text()
    documented = re.findall(r"^\| `(LEXARIUM_\w+)` \|(.*?)\| (?:`(.*?)` )?\| (.*) \|$", page, re.MULTILINE)
    rows = {row[0]: row for row in documented}
    assert set(rows) == {variable_name(setting) for setting in fields(Settings)}
    for setting in fields(Settings):
        _, _, default, words = rows[variable_name(setting)]
        assert default == str(setting.default)
        assert words.replace("`", "") == setting.metadata["help"]


def test_the_documented_table_of_roles_equals_the_enforced_one() -> None:
    documented = re.findall(r"^\| (\w+) \| (.+) \|$", (REFERENCE / "roles.md").read_text(), re.MULTILINE)
    assert set(documented) == {(str(role), deed.value) for deed, role in REQUIRED_ROLE.items()}


def test_the_documented_table_of_relations_equals_the_registry() -> None:
    documented = re.findall(
        r"^\| (\w+) \| ([A-Za-z_]+) \| (\w+) \|$", (ROOT / "docs" / "guides" / "schemas.md").read_text(), re.MULTILINE
    )
    assert sorted(set(documented) - {("collection", "relation", "to"), ("name", "for", "collections")}) == sorted(
        (source, relation_type.name, targets[0] if len(targets) == 1 else "any")
        for relation_type in RELATION_TYPES.values()
        for source, targets in relation_type.targets.items()
        if targets
    )


def test_the_documented_limits_of_a_batch_are_the_default_settings() -> None:
    text = (REFERENCE / "http.md").read_text()
    assert f"{Settings.batch_mb} MiB and {Settings.batch_lines:,} lines for a batch" in text


def test_every_variable_in_the_documentation_is_a_setting() -> None:
    setting_names = {variable_name(setting) for setting in fields(Settings)} | {
        "LEXARIUM_TEST_POSTGRES",
        "LEXARIUM_TEST_NO_SKIPS",
        "LEXARIUM_REAL_CATALOGUE",
        "LEXARIUM_REAL_VOCABULARIES",
    }
    for document in DOCUMENTS:
        assert set(re.findall(r"LEXARIUM_[A-Z_]+[A-Z]", document)) <= setting_names


def test_every_collection_of_valpha_in_the_reference_exists() -> None:
    page = (REFERENCE / "http.md").read_text()
    assert set(re.findall(r"`/api/v-alpha/(\w+)", page)) == {*RESOURCES} - {"task", "disorder"}


def run_page(page: str, server: Server, folder: Path) -> str:
    """Run all commands of a page in one shell and return their output. A server runs already."""
    script = "\n".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL))
    script = re.sub(r"^(make run|\. \.venv/bin/activate)$", "", script, flags=re.MULTILINE)
    # Another server stops after a moment; 143 is its end by SIGTERM while it still starts.
    stopping = r"timeout --preserve-status 5 \1 --port 0 || [ $? -eq 143 ]"
    script = re.sub(r"^(lexarium serve.*)", stopping, script, flags=re.MULTILINE)
    script = script.replace("http://127.0.0.1:8000", f"http://127.0.0.1:{server.port}").replace("curl ", "curl -sSf ")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "LEXARIUM_DATABASE": server.url, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_commands_of_the_readme_work(sample_url: DatabaseUrlFactory, tmp_path: Path) -> None:
    (tmp_path / "thesaurus.ttl").write_text(
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
        "<https://example.org/sky> a skos:ConceptScheme .\n"
        "<https://example.org/sky/1> a skos:Concept ; skos:inScheme <https://example.org/sky> ;\n"
        '    skos:prefLabel "star"@en .\n'
    )
    with Server(sample_url("sqlite")) as server:
        output = run_page(README, server, tmp_path)
        assert server.get("/api/v-alpha/concept?name=mental+time+travel").status == 200
        assert server.get("/api/v1/vocabularies/sky").status == 200
    assert '"name":"working memory"' in output


@pytest.mark.full
def test_the_commands_of_getting_started_work(sample_url: DatabaseUrlFactory, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "getting-started.md").read_text()
    turtle = re.search(r"```turtle\n(.*?)```", page, re.DOTALL)
    assert turtle
    (tmp_path / "colours.ttl").write_text(turtle[1])
    with Server(sample_url("sqlite")) as server:
        output = run_page(page, server, tmp_path)
        assert server.get("/vocabularies/colours").status == 200
        relations = {"broader": ["colours:2"], "in_scheme": ["https://example.org/colours"]}
        assert server.get("/api/v1/records/colours:3").json["relations"] == relations
    assert "Research settings" in output
    assert "alias crimson" in output
    assert "name: scarlet" in (tmp_path / "colours.obo").read_text()
    assert (tmp_path / "concepts.ttl").stat().st_size > 10_000


@pytest.mark.full
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("furo")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "docs", str(tmp_path)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "getting-started.html").exists()


def test_the_architecture_page_names_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    for path in (ROOT / "src" / "lexarium").rglob("*/__init__.py"):
        name = path.parent.name
        assert name == "versions" or re.search(rf"\b{name}\b", text), f"docs/architecture.md does not name {name}"


def test_every_link_between_documents_has_an_existing_target() -> None:
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links {target}"


def test_the_changelog_lists_the_current_version() -> None:
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
