"""Files in deploy/."""

import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from lexarium.settings import Settings, variable_name

DEPLOY = Path(__file__).parents[2] / "deploy"
FILES = sorted(DEPLOY.iterdir())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_variable_in_deployment_files_is_a_setting(path: Path) -> None:
    setting_names = {variable_name(setting) for setting in fields(Settings)}
    assert set(re.findall(r"LEXARIUM_[A-Z_]+", path.read_text())) <= setting_names


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_named_in_deployment_files_exists(path: Path) -> None:
    for name in re.findall(r"\./([\w.-]+):/", path.read_text()) + re.findall(r"deploy/([\w.-]+)", path.read_text()):
        assert (DEPLOY / name).exists(), f"{path.name} names {name}"


def test_the_nginx_configurations_for_one_and_several_nodes_have_the_same_site() -> None:
    def list_directives(name: str) -> list[str]:
        text = (DEPLOY / name).read_text().partition("client_max_body_size")[2].replace("lexarium_once", "lexarium")
        return [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]

    assert list_directives("nginx-nodes.conf") == list_directives("nginx.conf")


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("*.sh")), ids=lambda path: path.name)
def test_the_scripts_are_valid_bash(path: Path) -> None:
    assert subprocess.run(["bash", "-n", path], check=False).returncode == 0


def test_the_documented_command_uses_the_user_folder_and_settings_of_the_unit() -> None:
    unit = set((DEPLOY / "lexarium.service").read_text().splitlines())
    text = (
        (DEPLOY.parent / "docs" / "operations" / "deploy.md")
        .read_text()
        .partition("systemd-run ")[2]
        .partition("```")[0]
    )
    settings = {f"Environment={assignment}" for assignment in re.findall(r"--setenv=(\S+)", text)}
    assert {*re.findall(r"--property=(\S+)", text), *settings} <= unit
    # The log settings of a server do not matter to a command.
    assert settings == {line for line in unit if line.startswith("Environment=LEXARIUM_") and "_LOG=" not in line}
    assert "EnvironmentFile=-/etc/lexarium.env" in text


def test_the_systemd_unit_is_valid(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze (apt-get install systemd)")
    unit = tmp_path / "lexarium.service"
    # The program itself is not where the unit expects it.
    unit.write_text((DEPLOY / "lexarium.service").read_text().replace("/opt/lexarium/bin/lexarium", "/bin/true"))
    result = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
