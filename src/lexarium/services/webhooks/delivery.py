"""Delivers changes to webhooks: in order, at least once, by one process at a time."""

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from http import HTTPStatus
from random import SystemRandom
from typing import Any

import orjson
from standardwebhooks import Webhook as Signer

from lexarium.domain.change import Change
from lexarium.domain.errors import LexariumError
from lexarium.domain.identifiers import mint_id
from lexarium.domain.timestamps import format_timestamp, now_ms
from lexarium.domain.webhook import TEST_SEQ, Webhook, WebhookDelivery
from lexarium.services.serializers import serialize_change
from lexarium.services.webhooks.sender import TIMEOUT_SECONDS, DeliveryFailed, resolve_target, send, start_deadline
from lexarium.store import leases, revisions, webhooks
from lexarium.store.database import Database
from lexarium.store.leases import Lease
from lexarium.store.position import read_position
from lexarium.store.transaction import Transaction

logger = logging.getLogger(__name__)

_LEASE_NAME = "webhooks"
_LEASE_MS = 15_000
_RENEW_BELOW_MS = 13_000
_MIN_LEASE_MS = (TIMEOUT_SECONDS + 1) * 1_000
"""How much of the lease a delivery needs, so that it has ended when another process may begin."""
_POLL_SECONDS = 0.2
_RETRY_SECONDS = 1.0
_MAX_PARALLEL = 8
"""How many webhooks are delivered to at a time, so that a slow receiver does not hold up the others."""
_BATCH_SIZE = 200
"""How many changes are read at a time."""
_JITTER = (0.75, 1.25)


class DeliveryWorker:
    """The deliveries of one process. It does nothing while another process holds the lease."""

    def __init__(self, database: Database, *, allow_private: bool) -> None:
        self._database = database
        self._allow_private = allow_private
        self._holder = mint_id("dlv")
        self._held_until = 0
        self._running: dict[str, Future[None]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lexarium-deliverer", daemon=True)

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the deliveries that are under way, and let another process go on."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        """Never ends by an error: what cannot be delivered now can be later."""
        is_failing = False
        with ThreadPoolExecutor(_MAX_PARALLEL, "lexarium-delivery") as threads:
            while not self._stopping.wait(_RETRY_SECONDS if is_failing else _POLL_SECONDS):
                try:
                    self._poll(threads)
                    is_failing = False
                except Exception as error:
                    if not is_failing:
                        _log_error(error)
                    is_failing = True
        self._release_lease()

    def _poll(self, threads: ThreadPoolExecutor) -> None:
        finished = {webhook_id: future for webhook_id, future in self._running.items() if future.done()}
        self._running = {
            webhook_id: future for webhook_id, future in self._running.items() if webhook_id not in finished
        }
        with self._database.read(from_primary=True) as snapshot:
            due = [webhook for webhook in webhooks.list_due(snapshot, at=now_ms()) if webhook.id not in self._running]
            lease = leases.find(snapshot, _LEASE_NAME)
        if (due or self._running) and self._acquire_lease(lease):
            for webhook in due:
                self._running[webhook.id] = threads.submit(self._deliver, webhook)
        for future in finished.values():
            future.result()  # raises what went wrong

    def _acquire_lease(self, current: Lease | None) -> bool:
        """Whether the lease is ours; taken where it is free, renewed where it would soon run out."""
        at = now_ms()
        if _RENEW_BELOW_MS <= self._held_until - at <= _LEASE_MS:
            return True
        requested = Lease(_LEASE_NAME, self._holder, at + _LEASE_MS)
        if current is not None and current.blocks(requested, at=at):
            self._held_until = 0
            return False
        is_held = self._database.run_write(lambda transaction: leases.acquire(transaction, requested, at=at))
        if is_held and not self._held_until:
            logger.info("This process delivers to webhooks now.")
        self._held_until = requested.expires_at if is_held else 0
        return is_held

    def _release_lease(self) -> None:
        if self._held_until:
            try:
                self._database.run_write(lambda transaction: leases.release(transaction, _LEASE_NAME, self._holder))
            except LexariumError as error:
                _log_error(error)  # it will run out by itself

    def _can_continue(self) -> bool:
        return not self._stopping.is_set() and self._held_until - now_ms() >= _MIN_LEASE_MS

    def _deliver(self, webhook: Webhook) -> None:
        """Deliver what waits for a webhook, in order, until there is no more or one fails."""
        current: Webhook | None = webhook
        while current is not None and self._can_continue():
            current = self._deliver_batch(current)

    def _deliver_batch(self, webhook: Webhook) -> Webhook | None:
        """Deliver the next changes: the webhook as it stands then, or None where there is nothing more to do now."""
        with self._database.read(from_primary=True) as snapshot:
            epoch = read_position(snapshot).epoch
            changes = revisions.list_since(snapshot, webhook.seq, _BATCH_SIZE)
        for change in filter(webhook.matches, changes):
            if not self._can_continue():
                return None
            updated = self._deliver_change(webhook, change, epoch)
            if updated is None:
                return None
            webhook = updated
        if changes and changes[-1].seq > webhook.seq:
            self._database.run_write(lambda transaction: _advance(transaction, webhook, changes[-1].seq))
        return self._reload(webhook.id) if len(changes) == _BATCH_SIZE else None

    def _reload(self, webhook_id: str) -> Webhook | None:
        with self._database.read(from_primary=True) as snapshot:
            webhook = webhooks.find(snapshot, webhook_id)
        return None if webhook is None or webhook.disabled is not None else webhook

    def _deliver_change(self, webhook: Webhook, change: Change, epoch: str) -> Webhook | None:
        delivery = send_change(webhook, change, epoch, allow_private=self._allow_private)
        updated = self._database.run_write(lambda transaction: record_delivery(transaction, webhook, delivery))
        return None if delivery.error or updated is None or updated.disabled is not None else updated


def send_change(webhook: Webhook, change: Change, epoch: str, *, allow_private: bool) -> WebhookDelivery:
    """Send a change to a webhook, signed; what came of it is told, not raised."""
    # The same at every attempt, and for no other change: also not after a restore, which gives numbers out again.
    message_id = f"msg_{epoch}_{change.seq}"
    status, error = _sign_and_send(webhook, message_id, serialize_change(change), allow_private=allow_private)
    return WebhookDelivery(webhook.id, change.seq, now_ms(), status, error)


def send_test(database: Database, webhook: Webhook, *, allow_private: bool) -> WebhookDelivery:
    """Send a webhook something that is no change, signed as a change would be, and log what came of it."""
    status, error = _sign_and_send(
        webhook, mint_id("msg"), {"action": "test", "at": format_timestamp(now_ms())}, allow_private=allow_private
    )
    delivery = WebhookDelivery(webhook.id, TEST_SEQ, now_ms(), status, error)
    database.run_write(lambda transaction: _save_delivery(transaction, delivery))
    return delivery


def _save_delivery(transaction: Transaction, delivery: WebhookDelivery) -> None:
    if webhooks.find(transaction.connection, delivery.webhook) is not None:  # It may be gone by now.
        webhooks.add_delivery(transaction, delivery)


def _sign_and_send(
    webhook: Webhook, message_id: str, payload: dict[str, Any], *, allow_private: bool
) -> tuple[int | None, str]:
    body = orjson.dumps(payload)
    sent_at = datetime.now(UTC)
    signatures = [Signer(secret).sign(message_id, sent_at, body.decode()) for secret in webhook.secrets]
    headers = {
        "content-type": "application/json",
        "user-agent": "Lexarium",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(sent_at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
    deadline = start_deadline()
    try:
        status = send(
            resolve_target(webhook.url, allow_private=allow_private, deadline=deadline),
            body,
            headers,
            deadline=deadline,
        )
    except DeliveryFailed as error:
        return None, str(error)
    return status, "" if status // 100 == 2 else f"answered {status}"


def record_delivery(transaction: Transaction, webhook: Webhook, delivery: WebhookDelivery) -> Webhook | None:
    """Log a delivery and say how its webhook stands then: None where it is gone, or another process has moved it on."""
    current = webhooks.find(transaction.connection, webhook.id)
    if current is None or current.seq != webhook.seq:
        return None
    if delivery.error:
        is_unwanted = delivery.status == HTTPStatus.GONE
        updated = current.with_failure(delivery.at, SystemRandom().uniform(*_JITTER), disable=is_unwanted)
    else:
        updated = current.with_success(delivery.seq)
    webhooks.save(transaction, updated)
    webhooks.add_delivery(transaction, delivery)
    if updated.disabled is not None and current.disabled is None:
        logger.warning(
            "The webhook %s is disabled, after %d attempts: %s", webhook.id, updated.attempts, delivery.error
        )
    return updated


def _advance(transaction: Transaction, webhook: Webhook, seq: int) -> None:
    current = webhooks.find(transaction.connection, webhook.id)
    if current is not None and current.seq == webhook.seq:
        webhooks.save(transaction, current.with_success(seq))


def _log_error(error: Exception) -> None:
    if isinstance(error, LexariumError):
        logger.warning("Changes cannot be delivered now, trying again: %s", error)
    else:
        logger.exception("Changes cannot be delivered now, trying again.")
