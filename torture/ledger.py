"""What was asked of a server, what it answered, and whether the catalogue agrees."""

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Ask:
    """A write that makes one or several records, told apart by their names; all of them or none."""

    key: str
    names: tuple[str, ...]
    body: bytes
    batch: bool
    sound: bool = True
    """Whether it should be taken."""

    @property
    def path(self) -> str:
        """Where it is sent."""
        return "/api/v1/batch" if self.batch else "/api/v1/concept"


@dataclass
class Ledger:
    """The writes of all writers."""

    acknowledged: list[Ask] = field(default_factory=list)
    refused: list[Ask] = field(default_factory=list)
    unanswered: list[Ask] = field(default_factory=list)
    """Had no answer, or that it cannot be done now."""
    wrong: list[str] = field(default_factory=list)
    """Answers that nobody should get."""
    heard: threading.Event = field(default_factory=threading.Event)
    """Set with every answer."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answered(self, ask: Ask, status: int) -> None:
        """Note an answer; 0: there was none."""
        with self._lock:
            if status in (0, 503):
                self.unanswered.append(ask)
            elif status in (200, 201) and ask.sound:
                self.acknowledged.append(ask)
            elif status == 422 and not ask.sound:
                self.refused.append(ask)
            else:
                self.wrong.append(f"{ask.path} answered {status}")
        if status:
            self.heard.set()

    def problems(self, changes: Iterable[dict[str, Any]]) -> list[str]:
        """How the whole feed of the catalogue disagrees with what was answered."""
        found = list(self.wrong)
        made: Counter[str] = Counter()
        last = 0
        for change in changes:
            if change["seq"] != last + 1:
                found.append(f"the feed goes from {last} to {change['seq']}")
            last = change["seq"]
            if change["action"] == "create":
                made[change["record"]["name"]] += 1
                if change["record"]["definition_text"] != definition(change["record"]["name"]):
                    found.append(f"{change['id']} is there in part")
        for ask in self.acknowledged:
            found += [
                f"{name} was acknowledged, and is there {made[name]} times" for name in ask.names if made[name] != 1
            ]
        for ask in self.refused:
            found += [f"{name} was refused, and is there" for name in ask.names if made[name]]
        for ask in self.unanswered:
            there = {made[name] for name in ask.names}
            if there not in ({0}, {1}):
                found.append(f"of {', '.join(ask.names)}, which had no answer, some are there: {sorted(there)}")
        return found


def definition(name: str) -> str:
    """What the record of this name must say: long enough to lie on several pages of the file."""
    return f"What {name} is. " * 300
