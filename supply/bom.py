"""The bill of materials, as CycloneDX 1.5: python -m supply.bom FILE

Made from the lock file, which is what is installed, and from what the installed packages say of themselves.
"""

import json
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from lexarium import __version__
from supply.locked import Pin, pins


def document() -> dict[str, Any]:
    """The bill."""
    own = {"type": "application", "name": "lexarium", "version": __version__, "licenses": [_licence("MIT")]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {**own, "bom-ref": "lexarium"}},
        "components": [_component(pin) for pin in pins()],
    }


def licence_of(name: str) -> str:
    """The licence of an installed package, as it says itself; empty where it is not installed, as on another system."""
    try:
        told = metadata(name)
    except PackageNotFoundError:
        return ""
    classified = [each.rpartition(" :: ")[2] for each in told.get_all("Classifier") or [] if each.startswith("License")]
    known = {name: str(told[name]).partition("\n")[0] for name in ("License-Expression", "License") if name in told}
    return known.get("License-Expression") or known.get("License") or " OR ".join(classified)


def _component(pin: Pin) -> dict[str, Any]:
    purl = f"pkg:pypi/{pin.name}@{pin.version}"
    licence = licence_of(pin.name)
    return {
        "type": "library",
        "bom-ref": purl,
        "name": pin.name,
        "version": pin.version,
        "purl": purl,
        "licenses": [_licence(licence)] if licence else [],
        "properties": [{"name": "lexarium:sha256", "value": each} for each in pin.hashes],
    }


def _licence(told: str) -> dict[str, Any]:
    return {"license": {"name": told}}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(document(), indent=1) + "\n")
    print(f"Written to {sys.argv[1]}.")
