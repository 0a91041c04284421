"""Webhooks: who is told of changes, how long they are tried, and what became of it."""

from dataclasses import dataclass, replace

from lexarium.domain.changes import Action, Change

_SECOND = 1_000
_FIRST_WAIT = 2 * _SECOND
_GROWTH = 3
LONGEST_WAIT_MS = 4 * 60 * 60 * _SECOND
_GIVE_UP_AFTER = 24 * 60 * 60 * _SECOND


@dataclass(frozen=True)
class Webhook:
    """An address that is told of changes, one after the other, in the order of the log."""

    id: str
    url: str
    secrets: tuple[str, ...]
    """What deliveries are signed with, in the form of Standard Webhooks, the newest first."""
    collections: tuple[str, ...]
    """Whose changes it wants; empty: of all."""
    actions: tuple[Action, ...]
    """Which changes it wants; empty: all."""
    seq: int
    """The last change that was delivered or passed over."""
    created: int
    attempts: int = 0
    """How often the next change was tried in vain."""
    due: int = 0
    """Before this moment nothing is tried."""
    failing: int | None = None
    """Since when nothing could be delivered."""
    disabled: int | None = None

    def wants(self, change: Change) -> bool:
        """Whether it is to be told of a change."""
        return (not self.collections or change.collection in self.collections) and (
            not self.actions or change.action in self.actions
        )

    def succeeded(self, seq: int) -> "Webhook":
        """It, once the changes up to this one are delivered or passed over."""
        return replace(self, seq=seq, attempts=0, due=0, failing=None)

    def failed(self, at: int, jitter: float, *, unwanted: bool = False) -> "Webhook":
        """It, once a delivery has failed: to be tried again later and later, and disabled after a day or if unwanted.

        The jitter, a factor near 1, keeps many that failed together from coming back together.
        """
        attempts = self.attempts + 1
        # The exponent is bounded too: nobody needs the exact value of a wait of many lifetimes.
        wait = min(_FIRST_WAIT * _GROWTH ** min(attempts - 1, 20), LONGEST_WAIT_MS)
        failing = at if self.failing is None else self.failing
        given_up = unwanted or at - failing >= _GIVE_UP_AFTER
        return replace(
            self,
            attempts=attempts,
            due=at + int(wait * jitter),
            failing=failing,
            disabled=at if given_up else self.disabled,
        )

    def rotated(self, secret: str) -> "Webhook":
        """It, with a new secret. The last one signs along, so that a receiver can change over when it likes."""
        return replace(self, secrets=(secret, self.secrets[0]))

    def redirected(self, url: str) -> "Webhook":
        """It, with another address, which has not failed yet."""
        return self if url == self.url else replace(self, url=url, attempts=0, due=0, failing=None)

    def enabled(self) -> "Webhook":
        """It, to be tried at once, with the change where it stopped."""
        return replace(self, attempts=0, due=0, failing=None, disabled=None)


TRIAL = 0
"""Stands for a change where none was sent: an admin only tried the webhook out."""


@dataclass(frozen=True)
class Delivery:
    """One attempt to deliver a change."""

    webhook: str
    seq: int
    """Of the change, or `TRIAL`."""
    at: int
    status: int | None
    """What the receiver answered; None where it did not."""
    error: str = ""
    """Why it counts as failed; empty where it does not."""
