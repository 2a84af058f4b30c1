"""A broker's life towards the controller: registration, metadata, heartbeats, leaving (A16).

A broker that starts registers under a new incarnation; nothing is applied and nobody is answered
before that is acknowledged. Then it pulls the metadata log from offset 0 and sends heartbeats, the
next one an interval after the last one's answer. A registration that the controller does not know
any more is made anew.

Left out: what the metadata leads to (``cluster.applying``), the files of a clean stop
(``cluster.broker``).
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.applying import Applying
from cluster.broker_core import BrokerCore
from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.messages_control import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    MetadataFetchRequest,
    MetadataFetchResponse,
)
from cluster.metadata import MetadataImage
from cluster.names import NO_BROKER_EPOCH, Now, TopicIdPartition
from cluster.records import METADATA_RECORDS
from cluster.replica import Quarantined
from cluster.wire import MalformedMessage

__all__ = ["BrokerLife"]


class BrokerLife:
    """The requests of one broker to its controller, apart from ISR changes."""

    def __init__(
        self,
        core: BrokerCore,
        applying: Applying,
        incarnation_id: str,
        on_leave: Callable[[Now, Effects], None],
    ) -> None:
        """``on_leave`` is called once when the controller lets the broker go, or is not there."""
        self._core = core
        self._applying = applying
        self._incarnation_id = incarnation_id
        self._on_leave = on_leave
        self._registering: int | None = None
        self._beating: int | None = None
        self._pulling: int | None = None
        self._beats_at_once = False
        self.is_leaving = False

    def damaged(self) -> tuple[TopicIdPartition, ...]:
        """The partitions in quarantine."""
        return tuple(
            partition
            for partition in sorted(self._core.replicas)
            if isinstance(self._core.replicas[partition].role, Quarantined)
        )

    def _deadline_us(self, now: Now) -> int:
        return now.timer_us + self._core.config.request_timeout_ms * 1_000

    # Registration ------------------------------------------------------------------------------

    def register(self, now: Now, fx: Effects) -> None:
        """Ask to take part; asked again until there is an answer."""
        request = BrokerRegistrationRequest(
            self._core.correlations.take(),
            self._core.name,
            self._incarnation_id,
            self.last_epoch(),
            self.damaged(),
        )
        if self._registering is None:
            self._registering = request.correlation_id
        fx.send(self._core.controller, request)
        interval_us = self._core.config.broker_heartbeat_interval_ms * 1_000
        fx.arm(("register",), now.mono_us + interval_us)

    def last_epoch(self) -> int:
        """The broker epoch since which nothing of the logs was lost, -1 where that is not known.

        It is the present one, or what the marker of a clean stop named.
        """
        if self._core.broker_epoch != NO_BROKER_EPOCH:
            return self._core.broker_epoch
        previous = self._core.log_dir.previous_broker_epoch
        return NO_BROKER_EPOCH if previous is None else previous

    def on_registered(self, now: Now, response: BrokerRegistrationResponse, fx: Effects) -> None:
        """Acknowledged: the broker epoch is set, and the metadata may come.

        An answer to any of the requests of this attempt counts: all ask for the same incarnation.
        """
        if self._registering is None or response.correlation_id < self._registering:
            return
        if response.error_code is not ErrorCode.NONE:
            # Another incarnation's session may have to end first; the timer asks again.
            fx.note("registration-refused", error=response.error_code.name)
            return
        self._registering = None
        fx.disarm(("register",))
        self._core.broker_epoch = response.broker_epoch
        fx.note("register", broker_epoch=response.broker_epoch)
        if not fx.stops_at("registered"):
            self.after_registration(now, fx)

    def after_registration(self, now: Now, fx: Effects) -> None:
        """Begin to pull metadata and to send heartbeats."""
        self.pull(now, fx)
        self.beat(now, fx)

    # Metadata ----------------------------------------------------------------------------------

    def pull(self, now: Now, fx: Effects) -> None:
        """Ask for what lies behind the image's end; the controller answers when there is any."""
        request = MetadataFetchRequest(
            self._core.correlations.take(), self._core.name, self._core.image.end_offset
        )
        self._pulling = request.correlation_id
        fx.send(self._core.controller, request)
        fx.arm(("metadata-timeout",), self._deadline_us(now), now.timer_clock)

    def on_metadata(self, now: Now, response: MetadataFetchResponse, fx: Effects) -> None:
        """Apply records that follow on the image, or a snapshot ahead of it; drop anything else."""
        if response.correlation_id != self._pulling:
            return
        self._pulling = None
        fx.disarm(("metadata-timeout",))
        end = self._core.image.end_offset
        try:
            records = [METADATA_RECORDS.decode(data) for data in response.records]
        except MalformedMessage as error:
            fx.note("metadata-malformed", detail=str(error))
            records = []
        else:
            if response.is_snapshot and response.end_offset > end:
                image = MetadataImage.from_records(records, response.end_offset)
                self._applying.take_snapshot(now, image, fx)
            elif not response.is_snapshot and response.base_offset == end and records:
                self._applying.take_records(now, records, fx)
        if self._core.is_halted:
            return
        if self._core.image.end_offset > end:
            self.pull(now, fx)
        else:
            interval_us = self._core.config.broker_heartbeat_interval_ms * 1_000
            fx.arm(("metadata-timeout",), now.timer_us + interval_us, now.timer_clock)

    # Heartbeats --------------------------------------------------------------------------------

    def beat(self, now: Now, fx: Effects) -> None:
        """Send a heartbeat, unless one is under way."""
        if self._beating is not None or self._core.broker_epoch == NO_BROKER_EPOCH:
            return
        request = BrokerHeartbeatRequest(
            self._core.correlations.take(),
            self._core.name,
            self._core.broker_epoch,
            self._core.applied_offset,
            want_shut_down=self.is_leaving,
            damaged_partitions=self.damaged(),
        )
        self._beating = request.correlation_id
        fx.send(self._core.controller, request)
        fx.disarm(("heartbeat",))
        session_us = self._core.config.broker_session_timeout_ms * 1_000
        fx.arm(("heartbeat-timeout",), now.mono_us + session_us // 2)

    def on_beat(self, now: Now, response: BrokerHeartbeatResponse, fx: Effects) -> None:
        """Note whether the broker is fenced, and whether it may go."""
        if response.correlation_id != self._beating:
            return
        self._beating = None
        fx.disarm(("heartbeat-timeout",))
        if response.error_code in (
            ErrorCode.STALE_BROKER_EPOCH,
            ErrorCode.BROKER_ID_NOT_REGISTERED,
        ):
            fx.note("registration-lost", error=response.error_code.name)
            self.register(now, fx)
            return
        if response.error_code is ErrorCode.NONE:
            if not response.is_fenced and not self._core.is_open:
                self._core.is_open = True
                fx.note("open")
            if response.should_shut_down and self.is_leaving:
                self._on_leave(now, fx)
                return
        if self._beats_at_once:
            self._beats_at_once = False
            self.beat(now, fx)
            return
        interval_us = self._core.config.broker_heartbeat_interval_ms * 1_000
        fx.arm(("heartbeat",), now.mono_us + interval_us)

    def leave(self, now: Now, fx: Effects) -> None:
        """Begin a controlled shutdown; without a controller it ends after its timeout."""
        if self.is_leaving:
            return
        self.is_leaving = True
        if self._core.broker_epoch == NO_BROKER_EPOCH:
            self._on_leave(now, fx)
            return
        timeout_us = self._core.config.controlled_shutdown_timeout_ms * 1_000
        fx.arm(("controlled-shutdown",), now.mono_us + timeout_us)
        self._beats_at_once = self._beating is not None
        self.beat(now, fx)

    # What does not come ------------------------------------------------------------------------

    def on_timer(self, now: Now, kind: str, fx: Effects) -> bool:
        """A timer of this part is due; returns whether it was one."""
        match kind:
            case "register":
                self.register(now, fx)
            case "metadata-timeout":
                self.pull(now, fx)
            case "heartbeat":
                self.beat(now, fx)
            case "heartbeat-timeout":
                self._beating = None
                self.beat(now, fx)
            case "controlled-shutdown":
                self._on_leave(now, fx)
            case _:
                return False
        return True

    def on_lost(self, now: Now, fx: Effects) -> None:
        """The connection to the controller is gone: ask again in an interval."""
        interval_us = self._core.config.broker_heartbeat_interval_ms * 1_000
        if self._pulling is not None:
            self._pulling = None
            fx.arm(("metadata-timeout",), now.timer_us + interval_us, now.timer_clock)
        if self._beating is not None:
            self._beating = None
            fx.disarm(("heartbeat-timeout",))
            fx.arm(("heartbeat",), now.mono_us + interval_us)
