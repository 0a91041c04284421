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

from lexarium.domain.changes import Change
from lexarium.domain.errors import LexariumError
from lexarium.domain.identifiers import mint
from lexarium.domain.stamps import now, text_of
from lexarium.domain.webhooks import TRIAL, Delivery, Webhook
from lexarium.service.receivers import SECONDS, Unreachable, deadline, find_receiver, send
from lexarium.service.views import change_view
from lexarium.store import leases, versions, webhooks
from lexarium.store.backend import read_position
from lexarium.store.database import Database
from lexarium.store.leases import Lease
from lexarium.store.transaction import Transaction

log = logging.getLogger(__name__)

_LEASE = "webhooks"
_LEASE_MS = 15_000
_RENEWED_BELOW = 13_000
_NEEDED = (SECONDS + 1) * 1_000
"""How much of the lease a delivery needs, so that it has ended when another process may begin."""
_LOOK_SECONDS = 0.2
_TROUBLE_SECONDS = 1.0
_AT_ONCE = 8
"""How many webhooks are delivered to at a time, so that a slow receiver does not hold up the others."""
_CHANGES = 200
"""How many changes are read at a time."""
_JITTER = (0.75, 1.25)


class Deliverer:
    """The deliveries of one process. It does nothing while another process holds the lease."""

    def __init__(self, database: Database, *, private: bool) -> None:
        self._database = database
        self._private = private
        self._holder = mint("dlv")
        self._held_until = 0
        self._busy: dict[str, Future[None]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="lexarium-deliverer", daemon=True)

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the deliveries that are under way, and let another process go on."""
        self._stopping.set()
        self._thread.join()

    def _serve(self) -> None:
        """Never ends by an error: what cannot be delivered now can be later."""
        troubled = False
        with ThreadPoolExecutor(_AT_ONCE, "lexarium-delivery") as threads:
            while not self._stopping.wait(_TROUBLE_SECONDS if troubled else _LOOK_SECONDS):
                try:
                    self._look(threads)
                    troubled = False
                except Exception as error:
                    if not troubled:
                        _tell(error)
                    troubled = True
        self._let_go()

    def _look(self, threads: ThreadPoolExecutor) -> None:
        ended = {identifier: future for identifier, future in self._busy.items() if future.done()}
        self._busy = {identifier: future for identifier, future in self._busy.items() if identifier not in ended}
        with self._database.read(newest=True) as snapshot:
            due = [each for each in webhooks.due(snapshot, at=now()) if each.id not in self._busy]
            lease = leases.find(snapshot, _LEASE)
        if (due or self._busy) and self._hold(lease):
            for each in due:
                self._busy[each.id] = threads.submit(self._deliver, each)
        for future in ended.values():
            future.result()  # raises what went wrong

    def _hold(self, present: Lease | None) -> bool:
        """Whether the lease is ours; taken where it is free, renewed where it would soon run out."""
        at = now()
        if _RENEWED_BELOW <= self._held_until - at <= _LEASE_MS:
            return True
        wanted = Lease(_LEASE, self._holder, at + _LEASE_MS)
        if present is not None and present.is_kept_from(wanted, at=at):
            self._held_until = 0
            return False
        held = self._database.run(lambda transaction: leases.take(transaction, wanted, at=at))
        if held and not self._held_until:
            log.info("This process delivers to webhooks now.")
        self._held_until = wanted.until if held else 0
        return held

    def _let_go(self) -> None:
        if self._held_until:
            try:
                self._database.run(lambda transaction: leases.release(transaction, _LEASE, self._holder))
            except LexariumError as error:
                _tell(error)  # it will run out by itself

    def _may_go_on(self) -> bool:
        return not self._stopping.is_set() and self._held_until - now() >= _NEEDED

    def _deliver(self, hook: Webhook) -> None:
        """Deliver what waits for a webhook, in order, until there is no more or one fails."""
        going_on: Webhook | None = hook
        while going_on is not None and self._may_go_on():
            going_on = self._some(going_on)

    def _some(self, hook: Webhook) -> Webhook | None:
        """Deliver the next changes: the webhook as it stands then, or None where there is nothing more to do now."""
        with self._database.read(newest=True) as snapshot:
            epoch = read_position(snapshot).epoch
            changes = versions.since(snapshot, hook.seq, _CHANGES)
        for change in filter(hook.wants, changes):
            if not self._may_go_on():
                return None
            after = self._one(hook, change, epoch)
            if after is None:
                return None
            hook = after
        if changes and changes[-1].seq > hook.seq:
            self._database.run(lambda transaction: _moved_on(transaction, hook, changes[-1].seq))
        return self._standing(hook.id) if len(changes) == _CHANGES else None

    def _standing(self, identifier: str) -> Webhook | None:
        with self._database.read(newest=True) as snapshot:
            found = webhooks.find(snapshot, identifier)
        return None if found is None or found.disabled is not None else found

    def _one(self, hook: Webhook, change: Change, epoch: str) -> Webhook | None:
        delivery = deliver(hook, change, epoch, private=self._private)
        after = self._database.run(lambda transaction: record(transaction, hook, delivery))
        return None if delivery.error or after is None or after.disabled is not None else after


def deliver(hook: Webhook, change: Change, epoch: str, *, private: bool) -> Delivery:
    """Send a change to a webhook, signed; what came of it is told, not raised."""
    # The same at every attempt, and for no other change: also not after a restore, which gives numbers out again.
    message = f"msg_{epoch}_{change.seq}"
    status, error = _sent(hook, message, change_view(change), private=private)
    return Delivery(hook.id, change.seq, now(), status, error)


def try_out(database: Database, hook: Webhook, *, private: bool) -> Delivery:
    """Send a webhook something that is no change, signed as a change would be, and log what came of it."""
    status, error = _sent(hook, mint("msg"), {"action": "test", "at": text_of(now())}, private=private)
    trial = Delivery(hook.id, TRIAL, now(), status, error)
    database.run(lambda transaction: _note(transaction, trial))
    return trial


def _note(transaction: Transaction, delivery: Delivery) -> None:
    if webhooks.find(transaction.connection, delivery.webhook) is not None:  # It may be gone by now.
        webhooks.note(transaction, delivery)


def _sent(hook: Webhook, message: str, content: dict[str, Any], *, private: bool) -> tuple[int | None, str]:
    body = orjson.dumps(content)
    moment = datetime.now(UTC)
    signatures = [Signer(secret).sign(message, moment, body.decode()) for secret in hook.secrets]
    headers = {
        "content-type": "application/json",
        "user-agent": "Lexarium",
        "webhook-id": message,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
    until = deadline()
    try:
        status = send(find_receiver(hook.url, private=private, until=until), body, headers, until=until)
    except Unreachable as error:
        return None, str(error)
    return status, "" if status // 100 == 2 else f"answered {status}"


def record(transaction: Transaction, hook: Webhook, delivery: Delivery) -> Webhook | None:
    """Log a delivery and say how its webhook stands then: None where it is gone, or another process has moved it on."""
    present = webhooks.find(transaction.connection, hook.id)
    if present is None or present.seq != hook.seq:
        return None
    if delivery.error:
        unwanted = delivery.status == HTTPStatus.GONE
        after = present.failed(delivery.at, SystemRandom().uniform(*_JITTER), unwanted=unwanted)
    else:
        after = present.succeeded(delivery.seq)
    webhooks.save(transaction, after)
    webhooks.note(transaction, delivery)
    if after.disabled is not None and present.disabled is None:
        log.warning("The webhook %s is disabled, after %d attempts: %s", hook.id, after.attempts, delivery.error)
    return after


def _moved_on(transaction: Transaction, hook: Webhook, seq: int) -> None:
    present = webhooks.find(transaction.connection, hook.id)
    if present is not None and present.seq == hook.seq:
        webhooks.save(transaction, present.succeeded(seq))


def _tell(error: Exception) -> None:
    if isinstance(error, LexariumError):
        log.warning("Changes cannot be delivered now, trying again: %s", error)
    else:
        log.exception("Changes cannot be delivered now, trying again.")
