"""Deliver changes to webhooks: in order, at least once, by the process that holds the lease."""

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from random import SystemRandom
from typing import Any

import orjson
from standardwebhooks import Webhook as Signer

from lexarium.domain.errors import LexariumError
from lexarium.domain.identifiers import MAIN_VOCABULARY, mint_id
from lexarium.domain.text.timestamps import format_timestamp, now_ms
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.domain.webhook import TEST_SEQ, Webhook, WebhookDelivery
from lexarium.services.record_serializer import Presentation
from lexarium.services.serializers import serialize_change
from lexarium.services.webhooks.sender import TIMEOUT_SECONDS, DeliveryFailed, resolve_target, send, start_deadline
from lexarium.store import leases, revisions, webhooks
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.leases import Lease
from lexarium.store.transaction import Transaction

logger = logging.getLogger(__name__)

_LEASE_NAME = "webhooks"
_LEASE_MS = 15_000
_RENEW_BELOW_MS = 13_000
# A delivery must end before another process may take the lease.
_MIN_LEASE_MS = (TIMEOUT_SECONDS + 1) * 1_000
_POLL_SECONDS = 0.2
_RETRY_SECONDS = 1.0
_MAX_PARALLEL = 8
_BATCH_SIZE = 200
_JITTER = (0.75, 1.25)


class DeliveryWorker:
    """Background thread that delivers while its process holds the lease."""

    def __init__(self, database: Database, *, allow_private: bool) -> None:
        self._database = database
        self._allow_private = allow_private
        self._holder = mint_id("dlv")
        self._held_until = 0
        self._running: dict[str, Future[None]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lexarium-deliverer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the current deliveries and release the lease."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
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
        if self._held_until:
            try:
                self._database.run_write(lambda transaction: leases.release(transaction, _LEASE_NAME, self._holder))
            except LexariumError as error:
                _log_error(error)  # The lease expires by itself.

    def _poll(self, threads: ThreadPoolExecutor) -> None:
        finished = [future for future in self._running.values() if future.done()]
        self._running = {key: future for key, future in self._running.items() if future not in finished}
        with self._database.read(from_primary=True) as snapshot:
            due = [webhook for webhook in webhooks.list_due(snapshot, at=now_ms()) if webhook.id not in self._running]
            is_idle = not due and not self._running
            lease = None if is_idle else leases.find(snapshot, _LEASE_NAME)
        if not is_idle and self._acquire_lease(lease):
            for webhook in due:
                self._running[webhook.id] = threads.submit(self._deliver, webhook)
        for future in finished:
            future.result()  # Raises the error of a delivery.

    def _acquire_lease(self, current: Lease | None) -> bool:
        """Take the lease if it is free, renew it if it expires soon; return whether this process holds it."""
        at = now_ms()
        if _RENEW_BELOW_MS <= self._held_until - at <= _LEASE_MS:
            return True
        requested = Lease(_LEASE_NAME, self._holder, at + _LEASE_MS)
        if current is not None and current.blocks(requested, at=at):
            self._held_until = 0
            return False
        is_held = self._database.run_write(lambda transaction: leases.acquire(transaction, requested, at=at))
        if is_held and not self._held_until:
            logger.info("This process now delivers webhooks.")
        self._held_until = requested.expires_at if is_held else 0
        return is_held

    def _can_continue(self) -> bool:
        return not self._stopping.is_set() and self._held_until - now_ms() >= _MIN_LEASE_MS

    def _deliver(self, webhook: Webhook) -> None:
        """Deliver the pending changes of a webhook, in order, until there are no more or one fails."""
        while self._can_continue():
            with self._database.read(from_primary=True) as snapshot:
                position = read_position(snapshot)
                self._database.follow_vocabularies(snapshot, position)
                presentation = Presentation(VOCABULARIES[MAIN_VOCABULARY].base)
                changes = revisions.list_since(snapshot, webhook.seq, _BATCH_SIZE)
            for change in filter(webhook.matches, changes):
                if not self._can_continue():
                    return
                # The same at each attempt. The epoch keeps it unique after a restore, which reuses sequence numbers.
                message_id = f"msg_{position.epoch}_{change.seq}"
                payload = serialize_change(change, presentation)
                delivery = _send(webhook, change.seq, message_id, payload, allow_private=self._allow_private)
                updated = self._database.run_write(partial(_record_delivery, webhook=webhook, delivery=delivery))
                if delivery.error or updated is None or updated.disabled is not None:
                    return
                webhook = updated
            # The last changes may have been deleted with their vocabulary.
            last_seq = changes[-1].seq if len(changes) == _BATCH_SIZE else position.revision
            if last_seq > webhook.seq:
                updated = self._database.run_write(partial(_advance, webhook=webhook, seq=last_seq))
                if updated is None or updated.disabled is not None:
                    return
                webhook = updated
            if len(changes) < _BATCH_SIZE:
                return


def send_test(database: Database, webhook: Webhook, *, allow_private: bool) -> WebhookDelivery:
    """Send a signed test message to a webhook, and log the delivery."""
    payload = {"action": "test", "at": format_timestamp(now_ms())}
    delivery = _send(webhook, TEST_SEQ, mint_id("msg"), payload, allow_private=allow_private)

    def save(transaction: Transaction) -> None:
        if webhooks.find(transaction.flush(), webhook.id) is not None:  # It may have been deleted meanwhile.
            webhooks.add_delivery(transaction, delivery)

    database.run_write(save)
    return delivery


def _send(
    webhook: Webhook, seq: int, message_id: str, payload: dict[str, Any], *, allow_private: bool
) -> WebhookDelivery:
    """Sign and send a payload. A failure is part of the result and not raised."""
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
        target = resolve_target(webhook.url, allow_private=allow_private, deadline=deadline)
        status = send(target, body, headers, deadline=deadline)
    except DeliveryFailed as error:
        return WebhookDelivery(webhook.id, seq, now_ms(), None, str(error))
    return WebhookDelivery(webhook.id, seq, now_ms(), status, "" if status // 100 == 2 else f"answered {status}")


def _record_delivery(transaction: Transaction, webhook: Webhook, delivery: WebhookDelivery) -> Webhook | None:
    """Log a delivery and return the updated webhook, or None if it was deleted or advanced by another process."""
    current = webhooks.find(transaction.flush(), webhook.id)
    if current is None or current.seq != webhook.seq:
        return None
    if delivery.error:
        disable = delivery.status == HTTPStatus.GONE
        updated = current.with_failure(delivery.at, SystemRandom().uniform(*_JITTER), disable=disable)
    else:
        updated = current.with_success(delivery.seq)
    webhooks.save(transaction, updated)
    webhooks.add_delivery(transaction, delivery)
    if updated.disabled is not None and current.disabled is None:
        logger.warning(
            "Webhook %s was disabled after %d failed attempts: %s", webhook.id, updated.attempts, delivery.error
        )
    return updated


def _advance(transaction: Transaction, webhook: Webhook, seq: int) -> Webhook | None:
    """Skip changes up to a seq and return the updated webhook, or None as `_record_delivery`."""
    current = webhooks.find(transaction.flush(), webhook.id)
    if current is None or current.seq != webhook.seq:
        return None
    updated = current.with_success(seq)
    webhooks.save(transaction, updated)
    return updated


def _log_error(error: Exception) -> None:
    if isinstance(error, LexariumError):
        logger.warning("Webhook delivery failed, retrying: %s", error)
    else:
        logger.exception("Webhook delivery failed, retrying.")
