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

_SECONDS = 120
_NOTHING = "nothing was checked"


def main() -> int:
    """Ask, and tell."""
    tool = Path(sys.executable).with_name("pip-audit")
    if not tool.exists():
        print(f"pip-audit is not installed, so {_NOTHING}. `make develop` installs it.", file=sys.stderr)
        return 2
    command = [str(tool), "--requirement", str(LOCK), "--require-hashes", "--disable-pip", "--format", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        dependencies = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError):
        dependencies = []
    told, code = verdict(dependencies)
    print(told, file=sys.stderr if code else sys.stdout)
    return code


def verdict(dependencies: Sequence[dict[str, Any]]) -> tuple[str, int]:
    """What to tell of pip-audit's answer, and the exit code.

    It passes over what it cannot find, says so of each, and then that it knows of no weakness: that is no verdict.
    """
    asked = [each for each in dependencies if "vulns" in each]
    passed_over = [each["name"] for each in dependencies if "vulns" not in each]
    lines = [
        f"{each['name']} {each['version']}: {weakness['id']}, mended in "
        f"{', '.join(weakness['fix_versions']) or 'no version yet'}"
        for each in asked
        for weakness in each["vulns"]
    ]
    weak = len(lines)
    if not asked:
        away = "The public list of weaknesses cannot be reached from here, so"
        return f"{away} {_NOTHING}. Run `make audit` where there is a way to the internet.", 2
    lines.append(f"{len(asked)} packages were checked; {weak} weaknesses are known.")
    if passed_over:
        lines.append(f"{len(passed_over)} could not be checked: {', '.join(passed_over)}.")
    return "\n".join(lines), 1 if weak else 2 if passed_over else 0


if __name__ == "__main__":
    sys.exit(main())
