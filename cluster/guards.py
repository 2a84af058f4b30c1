"""Guards: the rules of the protocol that can be switched off, each with what it protects.

All are on. Switching one off brings a historical defect back, so that a test, or a user's scenario
(``[cluster.guards] fetch-epoch = false``), sees the harm: the invariant that the table names must
fire. Guards that live in the log are fields of ``storage.config.LogRules``; ``Guards.log_rules``
gives them.

Left out: the rules themselves, which stand where they are applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from attrs import field, fields, frozen

from storage.config import LogRules
from storage.values import Value

__all__ = ["GUARDS", "STORAGE_GUARDS", "Guard", "Guards"]


class Guard(NamedTuple):
    """One row of the table.

    Attributes:
        id: as scenario files spell it.
        rule: the section of the protocol's description.
        invariants: which of I1 to I20 must fire without it.
        history: the ticket or hazard.
        without: what the world was before.
    """

    id: str
    rule: str
    invariants: str
    history: str
    without: str


def _guard(rule: str, invariants: str, history: str, without: str) -> bool:
    switch: bool = field(
        default=True,
        metadata={"row": (rule, invariants, history, without)},
        validator=_is_bool,
    )
    return switch


def _is_bool(instance: object, attribute: object, value: object) -> None:
    if value.__class__ is not bool:
        name = getattr(attribute, "name", "guard")
        raise ValueError(f"guard {name} is {value!r}, allowed is True or False")


@frozen(kw_only=True)
class Guards(Value):
    """The switches; ``GUARDS`` says what each is for."""

    # Fetching ----------------------------------------------------------------------------------
    fetch_epoch: bool = _guard(
        "A4", "I2 I3 I20", "KAFKA-6880, B-04", "a leader serves a fetch of any epoch"
    )
    fetch_offset_match: bool = _guard(
        "A3", "I3 I10", "C.2", "a late response is applied at another offset than it was asked for"
    )
    fetch_response_epoch_match: bool = _guard(
        "A3", "I3 I20", "C.2", "a response to a fetch of an older epoch is applied"
    )
    batch_epoch_not_above_fetch_epoch: bool = _guard(
        "A1", "I20 I5", "KAFKA-18723, B-20", "a follower appends batches newer than its fetch"
    )
    truncate_before_append: bool = _guard(
        "A3", "I3 I5", "KAFKA-14704", "high watermark and log start of a diverging response count"
    )
    no_credit_on_divergence: bool = _guard(
        "A4",
        "I5 I1",
        "KAFKA-13141, B-25",
        "a diverging follower's offset raises the high watermark",
    )
    log_start_before_divergence: bool = _guard(
        "A4", "I12 I13", "KAFKA-12996, B-19", "divergence is answered where the log start is passed"
    )
    sample_before_read: bool = _guard(
        "A4", "I14 I12", "KAFKA-7104, B-31", "a response mixes offsets of two moments"
    )
    keep_last_fetched_epoch: bool = _guard(
        "A3", "I20 I12", "KAFKA-15510", "an empty response makes the follower forget its last epoch"
    )
    truncate_on_every_bump: bool = _guard(
        "A10", "I3", "KAFKA-7164, B-05", "no truncation where the leader stays the same"
    )
    epoch_answer_is_current: bool = _guard(
        "A10", "I1 I6", "KAFKA-8012, B-09", "a late answer truncates a log that leads by now"
    )
    full_truncation_only_below_start: bool = _guard(
        "A12", "I13", "KAFKA-2143, B-24", "a follower out of range drops its log at once"
    )
    empty_log_takes_batch_base: bool = _guard(
        "A1", "I12", "KAFKA-6975, B-22", "a log cannot begin inside a batch"
    )
    fetch_broker_epoch: bool = _guard(
        "A4", "I1 I6", "KIP-903, B-41", "a leader credits fetches of a broker's earlier life"
    )

    # High watermark ----------------------------------------------------------------------------
    hw_freeze: bool = _guard(
        "A5", "I19 I1", "KAFKA-15583, B-42", "the high watermark rises with too few in sync"
    )
    maximal_isr: bool = _guard(
        "A5 A13", "I5 I18", "KIP-497", "the high watermark does not wait for pending members"
    )
    eligible_outsiders_only: bool = _guard(
        "A5", "I12", "KAFKA-15021, B-28", "a fenced replica holds the high watermark back"
    )
    hw_rises_on_isr_commit: bool = _guard(
        "A5", "I12", "KAFKA-13091", "a shrink that commits late wakes nobody"
    )
    keep_leo_only_if_no_epoch_missed: bool = _guard(
        "A2", "I5 I1", "B-H9", "a leader re-elected over a missed epoch trusts old positions"
    )
    act_only_on_bumped_epoch: bool = _guard(
        "A2", "I9 I12", "KAFKA-13790, B-17", "a change of the ISR alone restarts the leadership"
    )
    assign_epoch_on_promotion: bool = _guard(
        "A2 A8", "I3 I13", "KAFKA-7415, B-06", "a leader has no entry for an epoch without records"
    )
    offset_not_available: bool = _guard(
        "A2 A22", "I11", "KIP-207", "the latest offset steps back after an election"
    )
    merge_hw_checkpoint: bool = _guard(
        "A5", "I17 I1", "KAFKA-1647, B-35", "a checkpoint forgets partitions that are not loaded"
    )

    # ISR ---------------------------------------------------------------------------------------
    epoch_start_rule: bool = _guard(
        "A13", "I6 I1", "KAFKA-7128, B-16", "a replica joins before it has the epoch's start"
    )
    join_at_high_watermark: bool = _guard(
        "A13", "I5 I6", "C.2", "a replica joins the ISR below the high watermark"
    )
    fenced_stays_out: bool = _guard(
        "A13 A14", "I8", "KIP-841, B-40", "a fenced or leaving broker joins an ISR"
    )
    member_broker_epoch: bool = _guard(
        "A13 A14", "I6 I1", "KIP-903, B-41", "a broker that came back empty joins by an old request"
    )
    partition_epoch: bool = _guard(
        "A14", "I18 I20", "KIP-497", "a stale proposal of an ISR is accepted"
    )
    isr_is_assigned: bool = _guard(
        "A14", "I8 I12", "KAFKA-9672, B-39", "an ISR has members that are no replicas"
    )

    # Controller --------------------------------------------------------------------------------
    registration_incarnation: bool = _guard(
        "A16", "I7", "C.2", "two brokers of one name are registered at once"
    )
    broker_epoch: bool = _guard(
        "A16", "I20", "KIP-631", "a heartbeat or proposal of an earlier life counts"
    )
    unclean_restart_leaves_isr: bool = _guard(
        "A16", "I6 I1", "KIP-966, B-42 B-44", "a broker that may have lost data may still lead"
    )
    elect_only_active: bool = _guard(
        "A15", "I8 I12", "KAFKA-19522, B-43", "a fenced broker is elected"
    )
    unclean_needs_permission: bool = _guard(
        "A15", "I1 I6", "KAFKA-977", "a replica out of sync is elected whatever the configuration"
    )
    commit_after_fsync: bool = _guard(
        "DECISIONS 2.2", "I7 I20", "KRaft", "a decision is told before it is durable"
    )

    # Log start, retention ----------------------------------------------------------------------
    retention_below_hw: bool = _guard(
        "A23", "I5 I14", "KAFKA-5634, B-33", "retention deletes what is not committed"
    )
    compaction_below_hw: bool = _guard(
        "A23", "I1", "KAFKA-13194, B-34", "an uncommitted record supersedes a committed one"
    )
    log_start_below_hw: bool = _guard(
        "A6", "I14", "KAFKA-5634", "records are deleted above the high watermark"
    )

    # Clients -----------------------------------------------------------------------------------
    min_isr_before_append: bool = _guard(
        "A7", "I19", "KIP-966", "acks=all is taken with too few in sync"
    )
    ack_waits_for_hw: bool = _guard("A7", "I1", "C.2", "acks=all is answered at the append")
    one_epoch_per_position: bool = _guard(
        "A22", "I11", "B-H3", "a consumer's position is valid if only its offset is"
    )
    newer_metadata_only: bool = _guard(
        "A22", "I12", "KIP-320", "metadata of an older epoch moves a client back"
    )
    topic_id_tells_topics: bool = _guard(
        "A22", "I12", "KAFKA-12257, B-67", "a topic created anew counts as old metadata"
    )
    bump_epoch_only_when_idle: bool = _guard(
        "A18", "I15", "KAFKA-14034, B-52", "a producer starts a new epoch with batches in doubt"
    )

    # In the log --------------------------------------------------------------------------------
    verify_epochs_at_open: bool = _guard(
        "A8", "I9 I13", "B-H1", "an epoch file that a crash left behind is believed"
    )
    cut_epochs_at_end: bool = _guard(
        "A10", "I12", "KAFKA-10706, B-10", "entries at the log's end stay and truncation loops"
    )
    undefined_epoch_is_undefined: bool = _guard(
        "A8", "I3", "KAFKA-6857, B-07", "an unknown epoch is said to end at the log's end"
    )
    answer_below_oldest_epoch: bool = _guard(
        "A8", "I3 I13", "KAFKA-7415, B-06", "an epoch older than all known has no answer"
    )
    fsync_before_rename: bool = _guard(
        "A9", "I17 I9", "KAFKA-16541, B-13 B-59", "a checkpoint can be empty after a power loss"
    )
    lower_boundary_first: bool = _guard(
        "DECISIONS 1.2", "I17", "", "a truncation that a crash interrupts looks like damage"
    )
    boundary_after_fsync: bool = _guard(
        "A21", "I17", "KAFKA-10101, B-56", "recovery trusts bytes that were never synced"
    )
    remove_marker_before_load: bool = _guard(
        "A21", "I17", "KAFKA-10471, B-57", "a crash while loading leaves a marker that lies"
    )
    duplicates_before_order: bool = _guard(
        "A18", "I15", "B-52", "a retry is called out of order, and sent again as new"
    )
    judge_appends_only: bool = _guard(
        "A18", "I12", "KAFKA-6003, B-51 B-53", "a follower judges what its leader has accepted"
    )
    marker_times_count: bool = _guard(
        "A18", "I15", "KAFKA-9144, B-53", "a producer that was fenced while idle is forgotten"
    )
    drop_snapshots_above: bool = _guard(
        "DECISIONS 1.9", "I15", "", "a truncation leaves producer snapshots of what it has cut"
    )

    def log_rules(self) -> LogRules:
        """The guards that live in the log."""
        return LogRules(**{name: getattr(self, name) for name in STORAGE_GUARDS})

    @classmethod
    def from_ids(cls, switches: Mapping[str, bool]) -> Guards:
        """Guards with some switched, by the ids of the table.

        Raises:
            ValueError: there is no such guard, or a value is no bool; the message has the ids.
        """
        names = {guard.id: guard.id.replace("-", "_") for guard in GUARDS}
        for name in switches:
            if name not in names:
                raise ValueError(f"guard is {name!r}, allowed are {', '.join(sorted(names))}")
        return cls(**{names[name]: value for name, value in switches.items()})


GUARDS: Final[tuple[Guard, ...]] = tuple(
    Guard(switch.name.replace("_", "-"), *switch.metadata["row"]) for switch in fields(Guards)
)
STORAGE_GUARDS: Final[tuple[str, ...]] = tuple(
    switch.name for switch in fields(Guards) if switch.name in {f.name for f in fields(LogRules)}
)
