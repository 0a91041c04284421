"""Every dependency is documented, used and locked."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest

from supply.audit import summarize
from supply.bom import build_bom, get_licence
from supply.locked import read_pins

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROW = re.compile(r"^\| ([\w.-]+) \| ([^|]+) \| [^|]{5,} \|(?: ([\w.-]+) \|)?$", re.MULTILINE)


def normalize_name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


def read_dependency_table(heading: str) -> dict[str, tuple[str, str]]:
    """Return the table under a heading: licence and user of each package."""
    page = (ROOT / "docs" / "dependencies.md").read_text()
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return {name: (licence, used_by) for name, licence, used_by in ROW.findall(section) if name != "package"}


def test_exactly_the_required_packages_are_documented() -> None:
    required = {
        "To run": PROJECT["project"]["dependencies"],
        "To build": PROJECT["dependency-groups"]["build"],
        "To develop": PROJECT["dependency-groups"]["dev"],
    }
    for heading, requirements in required.items():
        assert list(read_dependency_table(heading)) == sorted(map(normalize_name, requirements)), heading


def find_imported_packages(folder: Path) -> set[str]:
    """Return the third-party packages that the modules of a folder import."""
    modules: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules.add(str(node.module).partition(".")[0])
    distributions = packages_distributions()
    return {normalize_name(alias) for module in modules - {"lexarium"} for alias in distributions.get(module, [])}


@pytest.mark.full
def test_runtime_packages_are_exactly_those_imported_or_required_by_others() -> None:
    own_packages = {name for name, (_, used_by) in read_dependency_table("To run").items() if used_by == "us"}
    optional = {"cognitiveatlas", "pandas"}  # imported by the client where users have them
    assert find_imported_packages(ROOT / "src") - optional == own_packages
    for name, (_, used_by) in read_dependency_table("To run").items():
        if used_by != "us":
            assert name in {normalize_name(requirement) for requirement in requires(used_by) or []}, (
                f"{used_by} does not use {name}"
            )


def test_the_documented_licences_are_those_declared_by_the_packages() -> None:
    for name, (licence, _) in read_dependency_table("To run").items():
        declared_licence = get_licence(name).replace("BSD License", "BSD-3-Clause").replace("MIT License", "MIT")
        assert set(re.findall(r"[\w.-]+", declared_licence)) & set(re.findall(r"[\w.-]+", licence)), (
            name,
            declared_licence,
        )


def test_the_bill_of_materials_lists_every_locked_package() -> None:
    bill = build_bom()
    locked = {pin.name: pin for pin in read_pins()}
    assert set(locked) >= set(read_dependency_table("To run"))
    assert {component["name"] for component in bill["components"]} == set(locked)
    for component in bill["components"]:
        pin = locked[component["name"]]
        assert component["purl"] == f"pkg:pypi/{pin.name}@{pin.version}"
        assert len(component["properties"]) == len(pin.hashes) > 0
    licensed_names = [component["name"] for component in bill["components"] if component["licenses"]]
    assert set(licensed_names) >= set(read_dependency_table("To run"))


def test_the_bill_of_materials_is_written_to_a_file(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "supply.bom", tmp_path / "bom.json"], cwd=ROOT, check=True)
    assert json.loads((tmp_path / "bom.json").read_text())["bomFormat"] == "CycloneDX"


def test_an_audit_without_network_access_reports_that_nothing_was_checked() -> None:
    nowhere = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), "http://127.0.0.1:9")
    result = subprocess.run(
        [sys.executable, "-m", "supply.audit"],
        cwd=ROOT,
        env={**os.environ, **nowhere},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert "nothing was checked" in result.stderr
    assert "Traceback" not in result.stderr


SAFE: dict[str, Any] = {"name": "a", "version": "1", "vulns": []}
VULNERABLE: dict[str, Any] = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
SKIPPED: dict[str, Any] = {"name": "c", "skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize(
    ("dependencies", "code", "message"),
    [
        ([SAFE], 0, "1 packages were checked; 0 weaknesses"),
        ([SAFE, VULNERABLE], 1, "b 2: PYSEC-1, mended in 3"),
        ([SAFE, SKIPPED], 2, "1 could not be checked: c."),
        ([VULNERABLE, SKIPPED], 1, "1 could not be checked: c."),
        ([SKIPPED], 2, "nothing was checked"),
        ([], 2, "nothing was checked"),
    ],
)
def test_an_incomplete_audit_is_not_reported_as_passed(
    dependencies: list[dict[str, Any]], code: int, message: str
) -> None:
    lines, exit_code = summarize(dependencies)
    assert exit_code == code
    assert message in lines


def test_packages_are_installed_with_verified_hashes() -> None:
    for path in (ROOT / "Makefile", ROOT / "deploy" / "Dockerfile"):
        installed = re.findall(r"(?:pip|PIP\)) install .*-r \S+", path.read_text())
        assert installed
        assert all("--require-hashes" in line for line in installed), path


def test_the_lowest_tested_versions_are_the_lowest_allowed_ones() -> None:
    tested = {pin.name: pin.version for pin in read_pins(ROOT / "requirements-lowest.txt")}
    for requirement in [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["build"]]:
        bound = re.search(r">=([\d.]+)", requirement)
        assert bound, f"{requirement} has no lower bound"
        assert re.fullmatch(rf"{re.escape(bound[1])}(\.0)*", tested[normalize_name(requirement)]), requirement


def test_uvicorn_is_limited_to_the_tested_minor_version() -> None:
    locked = next(pin.version for pin in read_pins() if pin.name == "uvicorn")
    major, minor, *_ = map(int, locked.split("."))
    requirement = next(
        dependency for dependency in PROJECT["project"]["dependencies"] if normalize_name(dependency) == "uvicorn"
    )
    assert requirement.endswith(f",<{major}.{minor + 1}")


def test_documented_install_commands_use_the_lock_file() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").iterdir()]
    installing = [
        line
        for page in pages
        for line in re.split(r"\n|&&|`", page.read_text())
        if re.search(r"pip install\b.* (\.|lexarium)(\s|$|\))", line)
    ]
    assert installing
    assert [line for line in installing if "--no-deps" not in line] == []
