"""Webhooks: who is told of changes, how long they are tried, and what became of it."""

from dataclasses import dataclass, replace

from lexarium.domain.change import Action, Change

_SECOND_MS = 1_000
_INITIAL_BACKOFF_MS = 2 * _SECOND_MS
_BACKOFF_FACTOR = 3
MAX_BACKOFF_MS = 4 * 60 * 60 * _SECOND_MS
_DISABLE_AFTER_MS = 24 * 60 * 60 * _SECOND_MS


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

    def matches(self, change: Change) -> bool:
        """Whether it is to be told of a change."""
        return (not self.collections or change.collection in self.collections) and (
            not self.actions or change.action in self.actions
        )

    def with_success(self, seq: int) -> "Webhook":
        """It, once the changes up to this one are delivered or passed over."""
        return replace(self, seq=seq, attempts=0, due=0, failing=None)

    def with_failure(self, at: int, jitter: float, *, disable: bool = False) -> "Webhook":
        """It, once a delivery has failed: to be tried again later and later, and disabled after a day or if unwanted.

        The jitter, a factor near 1, keeps many that failed together from coming back together.
        """
        attempts = self.attempts + 1
        # The exponent is bounded too: nobody needs the exact value of a wait of many lifetimes.
        backoff_ms = min(_INITIAL_BACKOFF_MS * _BACKOFF_FACTOR ** min(attempts - 1, 20), MAX_BACKOFF_MS)
        failing_since = at if self.failing is None else self.failing
        should_disable = disable or at - failing_since >= _DISABLE_AFTER_MS
        return replace(
            self,
            attempts=attempts,
            due=at + int(backoff_ms * jitter),
            failing=failing_since,
            disabled=at if should_disable else self.disabled,
        )

    def with_secret(self, secret: str) -> "Webhook":
        """It, with a new secret. The last one signs along, so that a receiver can change over when it likes."""
        return replace(self, secrets=(secret, self.secrets[0]))

    def with_url(self, url: str) -> "Webhook":
        """It, with another address, which has not failed yet."""
        return self if url == self.url else replace(self, url=url, attempts=0, due=0, failing=None)

    def with_enabled(self) -> "Webhook":
        """It, to be tried at once, with the change where it stopped."""
        return replace(self, attempts=0, due=0, failing=None, disabled=None)


TEST_SEQ = 0
"""Stands for a change where none was sent: an admin only tried the webhook out."""


@dataclass(frozen=True)
class WebhookDelivery:
    """One attempt to deliver a change."""

    webhook: str
    seq: int
    """Of the change, or `TRIAL`."""
    at: int
    status: int | None
    """What the receiver answered; None where it did not."""
    error: str = ""
    """Why it counts as failed; empty where it does not."""
