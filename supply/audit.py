"""What is known to be wrong with the packages that are locked: python -m supply.audit

Asks the public list of weaknesses by way of pip-audit. Ends with 0 where none is known of any of them, 1 where some
are, and 2 where the list could not be asked about all of them: what was not asked about is not known to be well.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from supply.locked import LOCK

_TIMEOUT_SECONDS = 120
_NOTHING_CHECKED = "nothing was checked"


def main() -> int:
    """Ask, and tell."""
    tool = Path(sys.executable).with_name("pip-audit")
    if not tool.exists():
        print(f"pip-audit is not installed, so {_NOTHING_CHECKED}. `make develop` installs it.", file=sys.stderr)
        return 2
    command = [str(tool), "--requirement", str(LOCK), "--require-hashes", "--disable-pip", "--format", "json"]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
        dependencies = json.loads(completed.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError):
        dependencies = []
    summary, code = summarize(dependencies)
    print(summary, file=sys.stderr if code else sys.stdout)
    return code


def summarize(dependencies: Sequence[dict[str, Any]]) -> tuple[str, int]:
    """What to tell of pip-audit's answer, and the exit code.

    It passes over what it cannot find, says so of each, and then that it knows of no weakness: that is no verdict.
    """
    checked = [package for package in dependencies if "vulns" in package]
    skipped = [package["name"] for package in dependencies if "vulns" not in package]
    lines = [
        f"{package['name']} {package['version']}: {vulnerability['id']}, mended in "
        f"{', '.join(vulnerability['fix_versions']) or 'no version yet'}"
        for package in checked
        for vulnerability in package["vulns"]
    ]
    vulnerability_count = len(lines)
    if not checked:
        reason = "The public list of weaknesses cannot be reached from here, so"
        return f"{reason} {_NOTHING_CHECKED}. Run `make audit` where there is a way to the internet.", 2
    lines.append(f"{len(checked)} packages were checked; {vulnerability_count} weaknesses are known.")
    if skipped:
        lines.append(f"{len(skipped)} could not be checked: {', '.join(skipped)}.")
    return "\n".join(lines), 1 if vulnerability_count else 2 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
