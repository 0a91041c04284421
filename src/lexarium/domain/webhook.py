"""Webhooks, their retry policy, and deliveries."""

from dataclasses import dataclass, replace

from lexarium.domain.change import Action, Change
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.domain.vocabulary import VOCABULARIES

# All collections of a vocabulary.
ALL = "*"
_SECOND_MS = 1_000
_INITIAL_BACKOFF_MS = 2 * _SECOND_MS
_BACKOFF_FACTOR = 3
MAX_BACKOFF_MS = 4 * 60 * 60 * _SECOND_MS
_DISABLE_AFTER_MS = 24 * 60 * 60 * _SECOND_MS


@dataclass(frozen=True)
class Webhook:
    """Subscription of a URL to changes, delivered one by one in the order of the log."""

    id: str
    url: str
    # Signing secrets of Standard Webhooks, the newest first.
    secrets: tuple[str, ...]
    # Names that are unique in the database, or `vocabulary/name`, with `*` for all of a vocabulary. Empty for all.
    collections: tuple[str, ...]
    # Empty for all.
    actions: tuple[Action, ...]
    # Last change that was delivered or skipped.
    seq: int
    created: int
    # Failed attempts for the next change.
    attempts: int = 0
    # Earliest time of the next attempt.
    due: int = 0
    # Time of the first failure since the last success.
    failing: int | None = None
    disabled: int | None = None

    def matches(self, change: Change) -> bool:
        """Return whether the webhook subscribes to a change. Removed vocabularies have no changes for anyone."""
        slug, name = change.vocabulary, change.collection.rpartition("/")[2]
        vocabulary = VOCABULARIES.get(slug)
        if vocabulary is None or vocabulary.is_removed or (self.actions and change.action not in self.actions):
            return False
        names = {qualify_name(slug, name), f"{slug}/{name}", f"{slug}/{ALL}"}
        return not self.collections or not names.isdisjoint(self.collections)

    @property
    def vocabularies(self) -> list[str]:
        """Slugs of the vocabularies that it is limited to."""
        return list(dict.fromkeys(item.partition("/")[0] for item in self.collections if "/" in item))

    @property
    def collection_names(self) -> list[str]:
        """Names of the collections that it is limited to."""
        names = dict.fromkeys(item.rpartition("/")[2] for item in self.collections)
        return [name for name in names if name != ALL]

    def with_success(self, seq: int) -> "Webhook":
        """Return the webhook after changes up to a seq were delivered or skipped."""
        return replace(self, seq=seq, attempts=0, due=0, failing=None)

    def with_failure(self, at: int, jitter: float, *, disable: bool = False) -> "Webhook":
        """Return the webhook after a failure, with exponential backoff; disabled after a day or if `disable`.

        The jitter, a factor near 1, spreads the retries of webhooks that failed together.
        """
        attempts = self.attempts + 1
        # The exponent is bounded, since the result is.
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
        """Return the webhook with a new secret. The last one still signs too, so that a receiver can switch later."""
        return replace(self, secrets=(secret, self.secrets[0]))

    def with_url(self, url: str) -> "Webhook":
        """Return the webhook with another URL, and no failures."""
        return self if url == self.url else replace(self, url=url, attempts=0, due=0, failing=None)

    def with_enabled(self) -> "Webhook":
        """Return the webhook enabled, to continue at once where it stopped."""
        return replace(self, attempts=0, due=0, failing=None, disabled=None)


# Seq of a test delivery, which has no change.
TEST_SEQ = 0


@dataclass(frozen=True)
class WebhookDelivery:
    """One attempt to deliver a change."""

    webhook: str
    seq: int
    at: int
    # HTTP status, or None without a response.
    status: int | None
    # Reason of a failure; empty after a success.
    error: str = ""
