"""What the lock file pins."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.txt"
_PIN = re.compile(r"^([\w.-]+)(?:\[[\w,-]+\])?==(\S+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Pin:
    """A package of one version, and the files of it that may be installed, by their hashes."""

    name: str
    version: str
    hashes: tuple[str, ...]


def read_pins(lock: Path = LOCK) -> Iterator[Pin]:
    """Every package that a lock file pins."""
    for entry in re.split(r"\n(?=\w)", lock.read_text()):
        pin = _PIN.match(entry)
        if pin:
            yield Pin(pin[1], pin[2], tuple(_HASH.findall(entry)))
