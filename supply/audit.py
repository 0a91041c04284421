"""Check the locked packages for known vulnerabilities: python -m supply.audit

Queries the public database through pip-audit. Exit codes: 0 if no vulnerability is known, 1 if some are, and 2 if
not all packages could be checked.
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
    """Run pip-audit, print the result and return the exit code."""
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
    """Return the message for pip-audit's result, and the exit code.

    pip-audit skips packages it cannot find and still reports no vulnerability; such a result is no verdict.
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
