"""One-line mutants of the rules that ``cluster/README.md`` calls modelled, each with its test.

A mutant breaks one rule of the protocol's description in the line that carries it: the order of two
checks, a comparison, a least or a greatest, a step left out. ``tests/cluster/test_mutants.py``
applies each one to a copy of the packages and sees the named test fail.

``old`` is one whole line without its indentation, and stands in its file once. Whoever changes such
a line changes the entry with it; whoever removes the rule finds out here.

Left out: rules that a guard switches off in the running code (``cluster.guards``).
"""

from __future__ import annotations

from typing import Final

from tests.cluster.mutant import Mutant
from tests.cluster.mutants_replication import REPLICATION

__all__ = ["MUTANTS"]

MUTANTS: Final = (
    *REPLICATION,
    # Epochs and checkpoints --------------------------------------------------------------------
    Mutant(
        "A8",
        "entries with a later start survive an assignment",
        "storage/epochs.py",
        "while epochs and (epochs[-1] >= epoch or starts[-1] >= start):",
        "while epochs and epochs[-1] >= epoch:",
        "tests/storage/test_epochs.py::test_assign_evicts_what_contradicts_it",
    ),
    Mutant(
        "A8",
        "an epoch that the log lacks is echoed",
        "storage/epochs.py",
        "return (self._epochs[after - 1], end)",
        "return (epoch, end)",
        "tests/storage/test_epochs.py::test_end_offset_for",
    ),
    Mutant(
        "A8",
        "an entry at the cut survives a truncation",
        "storage/epochs.py",
        "while self._starts and self._starts[-1] >= offset:",
        "while self._starts and self._starts[-1] > offset:",
        "tests/storage/test_epochs.py::"
        "test_truncate_from_end_drops_entries_at_or_behind_the_offset",
    ),
    Mutant(
        "A9",
        "a renamed checkpoint is not synced in its directory",
        "storage/checkpoints.py",
        "disk.fsync_dir(path.parent)",
        "pass",
        "tests/storage/test_checkpoints.py::"
        "test_replacement_is_written_synced_renamed_and_the_directory_synced",
    ),
    Mutant(
        "A9",
        "a checkpoint may have more lines than it says",
        "storage/checkpoints.py",
        "if count != found:",
        "if count > found:",
        "tests/storage/test_checkpoints.py::test_malformed_container_is_refused_by_line",
    ),
    # Elections and brokers ---------------------------------------------------------------------
    Mutant(
        "A15",
        "the ELR counts beside an ISR",
        "cluster/elections.py",
        "return may_lead(broker) and (broker in isr or (not isr and broker in elr))",
        "return may_lead(broker) and (broker in isr or broker in elr)",
        "tests/cluster/test_elections.py::test_a15_the_elr_counts_only_where_the_isr_is_empty",
    ),
    Mutant(
        "A15",
        "a valid leader is not kept",
        "cluster/elections.py",
        "if leader is not None and is_valid(leader):",
        "if leader is not None and is_valid(leader) and kind is Election.PREFERRED:",
        "tests/cluster/test_elections.py::"
        "test_a15_online_keeps_a_valid_leader_and_else_takes_the_first_in_assignment_order",
    ),
    Mutant(
        "A15",
        "an uncleanly elected leader need not recover",
        "cluster/partition_changes.py",
        "leader_recovery_state=LeaderRecoveryState.RECOVERING if choice.is_unclean else state,",
        "leader_recovery_state=state,",
        "tests/cluster/test_partition_changes.py::"
        "test_a15_unclean_takes_the_first_active_replica_and_makes_it_recovering",
    ),
    Mutant(
        "A15",
        "the last member is not kept in the ISR",
        "cluster/partition_changes.py",
        "if not listed and not circumstances.eligible_leader_replicas:",
        "if not listed and circumstances.eligible_leader_replicas:",
        "tests/cluster/test_controller_brokers.py::"
        "test_a16_the_last_member_that_leaves_stays_listed_without_a_leader",
    ),
    Mutant(
        "A16",
        "a broker is unfenced one record early",
        "cluster/broker_control.py",
        "is_caught_up = request.current_metadata_offset > broker.broker_epoch",
        "is_caught_up = request.current_metadata_offset >= broker.broker_epoch",
        "tests/cluster/test_controller_brokers.py::"
        "test_a16_a_broker_is_unfenced_once_it_has_applied_its_registration",
    ),
    Mutant(
        "A16",
        "brokers are fenced by name, not by last contact",
        "cluster/broker_control.py",
        "for _, broker_id in sorted(overdue):",
        "for _, broker_id in sorted(overdue, key=lambda each: each[1]):",
        "tests/cluster/test_controller_brokers.py::"
        "test_a16_brokers_are_fenced_in_the_order_of_their_last_contact",
    ),
    Mutant(
        "A16",
        "a leaving broker waits for nobody to hear of it",
        "cluster/broker_control.py",
        "return all(self._applied.get(name, -1) >= needed for name in active)",
        "return all(self._applied.get(name, -1) >= 0 for name in active)",
        "tests/cluster/test_controller_brokers.py::"
        "test_a16_a_leader_leaves_when_all_active_brokers_know_its_successor",
    ),
    Mutant(
        "A16",
        "any marker is one of a clean shutdown",
        "cluster/broker_control.py",
        "is_clean = before is None or before.broker_epoch == request.previous_broker_epoch",
        "is_clean = before is None or request.previous_broker_epoch >= 0",
        "tests/cluster/test_controller_brokers.py::"
        "test_a16_a_marker_of_an_earlier_life_is_no_clean_shutdown",
    ),
    Mutant(
        "A17",
        "an ISR of the minimum size keeps an ELR",
        "cluster/eligible.py",
        "if len(new_isr) >= min_isr:",
        "if len(new_isr) > min_isr:",
        "tests/cluster/test_eligible.py::test_a17_an_isr_of_min_isr_clears_everything",
    ),
    Mutant(
        "A17",
        "a broker that lost records stays eligible",
        "cluster/eligible.py",
        "members = (set(elr) | set(old_isr)) - set(new_isr) - set(unclean)",
        "members = (set(elr) | set(old_isr)) - set(new_isr)",
        "tests/cluster/test_eligible.py::"
        "test_a17_who_leaves_below_min_isr_is_eligible_unless_unclean",
    ),
    Mutant(
        "A17",
        "the last leader is not noted",
        "cluster/eligible.py",
        "known = last_known_elr if leader_before is None else (leader_before,)",
        "known = last_known_elr",
        "tests/cluster/test_partition_changes.py::"
        "test_a17_the_last_leader_is_noted_when_the_isr_empties_and_the_elr_may_follow",
    ),
    # Producers ---------------------------------------------------------------------------------
    Mutant(
        "A18",
        "a log remembers six batches of a producer",
        "storage/producer_state.py",
        "batches = (*batches[1 - BATCHES_KEPT :], batch)",
        "batches = (*batches[-BATCHES_KEPT:], batch)",
        "tests/storage/test_producer_state.py::"
        "test_partial_overlap_or_older_than_five_is_out_of_order",
    ),
    Mutant(
        "A18",
        "a gap in the sequences is taken",
        "storage/producer_state.py",
        "if first != expected:",
        "if first < expected:",
        "tests/storage/test_producer_state.py::"
        "test_a_gap_is_out_of_order_until_it_is_sent_again_in_order",
    ),
    Mutant(
        "A18",
        "the first batch of a producer epoch does not go alone",
        "cluster/producer_batches.py",
        "if not self.is_established or batch.attempts > 0:",
        "if batch.attempts > 0:",
        "tests/cluster/test_producer_idempotence.py::"
        "test_a18_five_batches_are_in_flight_once_the_first_is_acknowledged",
    ),
    # Segments and recovery ---------------------------------------------------------------------
    Mutant(
        "A20",
        "a segment does not roll by the age of its batches",
        "storage/segment.py",
        "if size + frame_bytes > self.size_limit_bytes or timestamp_ms > self.expires_ms:",
        "if size + frame_bytes > self.size_limit_bytes:",
        "tests/storage/test_log_shape.py::test_timestamps_roll_a_segment_whose_first_batch_has_one",
    ),
    Mutant(
        "A20",
        "an empty segment rolls by age",
        "storage/segment.py",
        "if not size:",
        "if size < 0:",
        "tests/storage/test_log_shape.py::test_empty_segment_never_rolls_for_age",
    ),
    Mutant(
        "A21",
        "a truncation keeps the recovery point",
        "storage/log_durability.py",
        "if self.boundary.end_offset > end:",
        "if self.boundary.end_offset > end + 1_000:",
        "tests/storage/test_guards.py::test_lower_boundary_first",
    ),
    Mutant(
        "A21",
        "damage below the recovery point is cut",
        "storage/recovery.py",
        "is_durable = segment.next_offset < durable_end",
        "is_durable = segment.next_offset < 0",
        "tests/storage/test_damage_log_dir.py::"
        "test_row07_damage_that_is_trusted_refuses_when_everything_is_walked",
    ),
    Mutant(
        "A21",
        "a log that could not be closed is marked as cleanly stopped",
        "storage/log_dir.py",
        "first_error = first_error or error",
        "first_error = None",
        "tests/storage/test_log_dir.py::"
        "test_failure_while_closing_leaves_no_marker_and_releases_everything",
    ),
    # Look-up, retention, defaults --------------------------------------------------------------
    Mutant(
        "A22",
        "a new leader tells its latest offset at once",
        "cluster/answering.py",
        "or replica.high_watermark >= leader.leader_epoch_start",
        "or replica.high_watermark >= 0",
        "tests/cluster/test_leader_promotion.py::"
        "test_a2_a22_the_latest_offset_does_not_step_back_after_an_election",
    ),
    Mutant(
        "A22",
        "a consumer is told of a record at the high watermark",
        "cluster/answering.py",
        "if found.offset >= end:",
        "if found.offset > end:",
        "tests/cluster/test_leader_offsets.py::"
        "test_a22_a_match_at_or_above_the_high_watermark_is_not_a_consumers",
    ),
    Mutant(
        "A22",
        "a record of exactly the time asked for is passed over",
        "storage/log_reader.py",
        "if record[2] >= timestamp_ms and offset >= start:",
        "if record[2] > timestamp_ms and offset >= start:",
        "tests/cluster/test_leader_offsets.py::"
        "test_a22_the_first_record_late_enough_in_offset_order_is_found",
    ),
    Mutant(
        "A22",
        "a consumer does not see that the log was cut below it",
        "cluster/positions.py",
        "if is_same and end >= position.offset:",
        "if is_same:",
        "tests/cluster/test_consumer_truncation.py::"
        "test_b66_truncation_below_the_position_is_an_event_and_reading_goes_on_there",
    ),
    Mutant(
        "A23",
        "retention passes the limit that it is given",
        "storage/retention.py",
        "end = min(limits.limit_offset, limits.boundary_base)",
        "end = limits.boundary_base",
        "tests/storage/test_retention.py::test_nothing_that_ends_above_the_limit_goes",
    ),
    Mutant(
        "A23",
        "compaction passes the high watermark",
        "cluster/upkeep.py",
        "limit = replica.high_watermark if self._core.guards.compaction_below_hw else log.leo",
        "limit = log.leo",
        "tests/cluster/test_broker_disk.py::"
        "test_a23_b34_compaction_goes_no_further_than_the_high_watermark",
    ),
    Mutant(
        "A24",
        "a fetch waits for a second by default",
        "cluster/config.py",
        "replica_fetch_wait_max_ms: int = _ms(500)",
        "replica_fetch_wait_max_ms: int = _ms(1_000)",
        "tests/cluster/test_config.py::test_a24_defaults_are_those_of_kafka",
    ),
    Mutant(
        "A24",
        "two replicas have to be in sync by default",
        "cluster/config.py",
        "min_insync_replicas: int = _count(1)",
        "min_insync_replicas: int = _count(2)",
        "tests/cluster/test_config.py::test_a24_defaults_are_those_of_kafka",
    ),
)
