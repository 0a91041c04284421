"""Write the bill of materials as CycloneDX 1.5: python -m supply.bom FILE

Built from the lock file and the metadata of the installed packages.
"""

import json
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from lexarium import __version__
from supply.locked import Pin, read_pins


def build_bom() -> dict[str, Any]:
    """Build the CycloneDX document."""
    application = {
        "type": "application",
        "name": "lexarium",
        "version": __version__,
        "licenses": [_build_licence("MIT")],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {**application, "bom-ref": "lexarium"}},
        "components": [_build_component(pin) for pin in read_pins()],
    }


def get_licence(name: str) -> str:
    """Return the licence that an installed package declares; empty if it is not installed."""
    try:
        package_metadata = metadata(name)
    except PackageNotFoundError:
        return ""
    classifiers = [
        classifier.rpartition(" :: ")[2]
        for classifier in package_metadata.get_all("Classifier") or []
        if classifier.startswith("License")
    ]
    declared = {
        name: str(package_metadata[name]).partition("\n")[0]
        for name in ("License-Expression", "License")
        if name in package_metadata
    }
    return declared.get("License-Expression") or declared.get("License") or " OR ".join(classifiers)


def _build_component(pin: Pin) -> dict[str, Any]:
    purl = f"pkg:pypi/{pin.name}@{pin.version}"
    licence = get_licence(pin.name)
    return {
        "type": "library",
        "bom-ref": purl,
        "name": pin.name,
        "version": pin.version,
        "purl": purl,
        "licenses": [_build_licence(licence)] if licence else [],
        "properties": [{"name": "lexarium:sha256", "value": digest} for digest in pin.hashes],
    }


def _build_licence(licence_name: str) -> dict[str, Any]:
    return {"license": {"name": licence_name}}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(build_bom(), indent=1) + "\n")
    print(f"Written to {sys.argv[1]}.")
