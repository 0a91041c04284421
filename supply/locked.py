"""Read the lock file."""

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
    """Locked version of a package, with the hashes of its files."""

    name: str
    version: str
    hashes: tuple[str, ...]


def read_pins(lock: Path = LOCK) -> Iterator[Pin]:
    """Yield every package of a lock file."""
    for entry in re.split(r"\n(?=\w)", lock.read_text()):
        pin = _PIN.match(entry)
        if pin:
            yield Pin(pin[1], pin[2], tuple(_HASH.findall(entry)))
