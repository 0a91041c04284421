"""Comments on records, in threads that curators close and reopen."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

# In one thread, with what closes and reopens it.
MAX_THREAD_COMMENTS = 200


class CommentAction(StrEnum):
    """Effect of a comment on its thread."""

    OPEN = "open"
    REPLY = "reply"
    CLOSE = "close"
    REOPEN = "reopen"


@dataclass(frozen=True)
class Comment:
    """Comment on a record. One that closes or reopens its thread may have no text, nor has that of an erased person."""

    id: str
    # Id that is unique in the database.
    record: str
    # Id of the first comment of its thread.
    thread: str
    author: str
    at: int
    action: CommentAction
    text: str


@dataclass(frozen=True)
class CommentThread:
    """Comments that belong together, the oldest first."""

    comments: Sequence[Comment]

    @property
    def id(self) -> str:
        """Id of the first comment."""
        return self.comments[0].id

    @property
    def record(self) -> str:
        """Record that the comments are about."""
        return self.comments[0].record

    @property
    def is_closed(self) -> bool:
        """Whether a curator has closed it, and none has reopened it since."""
        states = [item.action for item in self.comments if item.action in (CommentAction.CLOSE, CommentAction.REOPEN)]
        return bool(states) and states[-1] is CommentAction.CLOSE
