"""Mutants of what brokers do with a partition: append, fetch, commit, truncate, keep the ISR.

Left out: the rest of the table, and what all of it is for (``tests.cluster.mutants``).
"""

from __future__ import annotations

from typing import Final

from tests.cluster.mutant import Mutant

__all__ = ["REPLICATION"]

REPLICATION: Final = (
    # Appending ---------------------------------------------------------------------------------
    Mutant(
        "A1",
        "a client's batch may carry any base offset",
        "cluster/serving.py",
        "if batch.base_offset != 0 or batch.control is not None or not is_dense:",
        "if batch.control is not None or not is_dense:",
        "tests/cluster/test_leader_append.py::"
        "test_a1_bytes_that_are_not_one_batch_at_offset_0_are_refused",
    ),
    Mutant(
        "A1",
        "a new epoch begins behind its first batch",
        "storage/partition_log.py",
        "self._assign_epochs([(epoch, base_offset)])",
        "self._assign_epochs([(epoch, next_offset)])",
        "tests/storage/test_epochs.py::test_assign_of_a_new_epoch_is_durable_before_its_first_batch",
    ),
    Mutant(
        "A1",
        "a follower takes a batch of the epoch after its fetch",
        "cluster/replicating.py",
        "if frame_epoch > epoch and not takes_newer:",
        "if frame_epoch > epoch + 1 and not takes_newer:",
        "tests/cluster/test_follower_append.py::"
        "test_a1_of_frames_newer_than_the_fetch_only_those_in_front_are_taken",
    ),
    # Roles -------------------------------------------------------------------------------------
    Mutant(
        "A2",
        "a new leader takes outsiders for caught up",
        "cluster/leading.py",
        "CaughtUp(now.timer_us if name in isr else 0),",
        "CaughtUp(now.timer_us),",
        "tests/cluster/test_leader_promotion.py::"
        "test_a2_a_new_leader_knows_no_positions_and_members_are_caught_up_now",
    ),
    Mutant(
        "A2",
        "metadata of the same epoch makes a leader anew",
        "cluster/applying.py",
        "is_bumped = leader is None or state.leader_epoch > leader.leader_epoch",
        "is_bumped = leader is None or state.leader_epoch >= leader.leader_epoch",
        "tests/cluster/test_leader_promotion.py::"
        "test_a2_b17_metadata_of_the_same_epoch_changes_the_isr_and_nothing_else",
    ),
    Mutant(
        "A2",
        "an epoch starts at the log's start",
        "cluster/applying.py",
        "log.leo,",
        "log.log_start_offset,",
        "tests/cluster/test_leader_promotion.py::"
        "test_a2_a22_the_latest_offset_does_not_step_back_after_an_election",
    ),
    # Fetching ----------------------------------------------------------------------------------
    Mutant(
        "A3",
        "a follower's high watermark passes its log end",
        "cluster/replicating.py",
        "replica.high_watermark = max(log.log_start_offset, min(answer.high_watermark, log.leo))",
        "replica.high_watermark = max(log.log_start_offset, answer.high_watermark)",
        "tests/cluster/test_follower_fetching.py::"
        "test_a3_the_high_watermark_is_the_leaders_between_log_start_and_end",
    ),
    Mutant(
        "A3",
        "answers of older epochs count",
        "cluster/fetching.py",
        "return requested_epoch == current_epoch or not guards.fetch_response_epoch_match",
        "return requested_epoch <= current_epoch or not guards.fetch_response_epoch_match",
        "tests/cluster/test_fetching.py::"
        "test_a3_an_answer_counts_exactly_if_offset_and_epoch_are_those_of_now",
    ),
    Mutant(
        "A3",
        "the next fetch names the leader's epoch, not the last batch's",
        "cluster/replicating.py",
        "fetch.last_fetched_epoch = frames.last_epoch",
        "fetch.last_fetched_epoch = fetch.leader_epoch",
        "tests/cluster/test_follower_fetching.py::"
        "test_a3_after_records_the_next_fetch_names_their_end_and_epoch",
    ),
    Mutant(
        "A3",
        "a fenced fetch is tried again without new metadata",
        "cluster/replicating.py",
        "return Step.FAILED if asked[1] == fetch.leader_epoch else Step.RETRY_LATER",
        "return Step.RETRY_LATER",
        "tests/cluster/test_follower_fetching.py::"
        "test_a3_fenced_with_the_epoch_that_is_ours_fails_until_new_metadata",
    ),
    Mutant(
        "A4",
        "leadership is judged before the epoch",
        "cluster/fetching.py",
        "if requested_epoch < local_epoch:",
        "if is_leader and requested_epoch < local_epoch:",
        "tests/cluster/test_fetching.py::test_a4_the_epoch_is_judged_before_leadership",
    ),
    Mutant(
        "A4",
        "only an end below the fetch diverges, no older epoch",
        "cluster/fetching.py",
        "if epoch < last_fetched_epoch or end < fetch_offset:",
        "if end < fetch_offset:",
        "tests/cluster/test_fetching.py::"
        "test_a4_every_small_fetch_gets_the_verdict_of_the_naive_twin",
    ),
    Mutant(
        "A4",
        "a follower one fetch behind is not caught up",
        "cluster/isr.py",
        "elif fetch_offset >= before.last_fetch_leader_leo:",
        "elif fetch_offset >= leader_leo:",
        "tests/cluster/test_isr.py::"
        "test_a4_a_follower_one_fetch_behind_a_busy_leader_stays_caught_up",
    ),
    Mutant(
        "A4",
        "consumers read above the high watermark",
        "cluster/serving.py",
        "end = leo if is_follower else high_watermark",
        "end = leo",
        "tests/cluster/test_leader_fetch.py::"
        "test_a4_replicas_read_to_the_end_and_consumers_to_the_high_watermark",
    ),
    Mutant(
        "A4",
        "a fenced broker's fetch is refused",
        "cluster/serving.py",
        "and not broker.is_fenced",
        "and broker.broker_epoch >= 0",
        "tests/cluster/test_leader_fetch.py::"
        "test_a4_kip903_a_fenced_brokers_fetch_is_served_and_no_epoch_skips_the_check",
    ),
    # High watermark and log start --------------------------------------------------------------
    Mutant(
        "A5",
        "the last follower alone says what is committed",
        "cluster/watermark.py",
        "candidate = min(candidate, leo)",
        "candidate = leo",
        "tests/cluster/test_leader_high_watermark.py::"
        "test_a5_it_is_the_lowest_end_of_leader_and_members",
    ),
    Mutant(
        "A5",
        "a high watermark is lowered",
        "cluster/watermark.py",
        "return current if unseen > 1 else max(current, candidate)",
        "return current if unseen > 1 else candidate",
        "tests/cluster/test_watermark.py::test_a5_a_high_watermark_is_never_lowered",
    ),
    Mutant(
        "A5",
        "the freeze asks for more members than there are replicas",
        "cluster/watermark.py",
        "return guards.hw_freeze and isr_size < min(min_isr, replication_factor)",
        "return guards.hw_freeze and isr_size < min_isr",
        "tests/cluster/test_watermark.py::"
        "test_a5_nothing_rises_while_fewer_than_min_isr_or_all_replicas_are_in_sync",
    ),
    Mutant(
        "A5",
        "a follower about to join is overtaken",
        "cluster/watermark.py",
        "if is_member or waits:",
        "if is_member:",
        "tests/cluster/test_watermark.py::"
        "test_a5_a_caught_up_follower_about_to_join_is_not_overtaken",
    ),
    Mutant(
        "A6",
        "records above the high watermark can be deleted",
        "cluster/answering.py",
        "highest = replica.high_watermark if self._core.guards.log_start_below_hw else log.leo",
        "highest = log.leo",
        "tests/cluster/test_leader_offsets.py::"
        "test_a6_a_deletion_above_the_high_watermark_is_out_of_range",
    ),
    Mutant(
        "A6",
        "a deletion waits for dead replicas",
        "cluster/leading.py",
        "if self._core.image.is_active(name):",
        "if name:",
        "tests/cluster/test_leader_offsets.py::"
        "test_a6_a_replica_that_is_not_alive_is_not_waited_for",
    ),
    # Acknowledging -----------------------------------------------------------------------------
    Mutant(
        "A7",
        "acks=all is answered one record early",
        "cluster/serving.py",
        "if replica.high_watermark < next_offset:",
        "if replica.high_watermark < next_offset - 1:",
        "tests/cluster/test_leader_append.py::test_a7_acks_all_waits_for_every_member_of_the_isr",
    ),
    Mutant(
        "A7",
        "a commit below the minimum ISR is a success",
        "cluster/leading.py",
        "error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "error = ErrorCode.NONE",
        "tests/cluster/test_leader_append.py::"
        "test_a7_a_commit_below_min_isr_is_not_enough_replicas_after_append_and_stays",
    ),
    Mutant(
        "A7",
        "pending members count before the append",
        "cluster/serving.py",
        "if len(leader.isr.isr) < self._leading.min_isr(replica):",
        "if len(leader.isr.maximal) < self._leading.min_isr(replica):",
        "tests/cluster/test_leader_append.py::"
        "test_a7_a_pending_member_does_not_count_before_the_append",
    ),
    Mutant(
        "A7",
        "nobody who waits hears that leadership is lost",
        "cluster/leading.py",
        "for waiters in (leader.produces, leader.synced_produces):",
        "for waiters in ():",
        "tests/cluster/test_leader_append.py::"
        "test_a7_what_waits_when_leadership_is_lost_has_an_unknown_outcome",
    ),
    # Truncation --------------------------------------------------------------------------------
    Mutant(
        "A10",
        "an epoch that only the leader has ends the rounds",
        "cluster/truncation.py",
        "return Truncation(min(own, leo), False)",
        "return Truncation(min(own, leo), True)",
        "tests/cluster/test_truncation.py::"
        "test_a10_a_follower_with_epochs_that_the_leader_lacks_goes_on_until_both_name_the_same",
    ),
    Mutant(
        "A10",
        "the leader's end of a shared epoch does not count",
        "cluster/truncation.py",
        "return Truncation(min(own, end, leo), True)",
        "return Truncation(min(own, leo), True)",
        "tests/cluster/test_truncation.py::test_a10_every_row_of_the_table",
    ),
    Mutant(
        "A10",
        "an answer of an older epoch truncates",
        "cluster/replicating.py",
        "and asked[1] == fetch.leader_epoch",
        "and asked[1] <= fetch.leader_epoch",
        "tests/cluster/test_follower_fetching.py::"
        "test_a10_an_answer_of_an_older_epoch_is_dropped_and_asked_anew",
    ),
    Mutant(
        "A11",
        "a log cut without epochs keeps what is above its high watermark",
        "cluster/replicating.py",
        "end = replica.truncate(high_watermark)",
        "end = replica.truncate(leo)",
        "tests/cluster/test_truncation_hazards.py::"
        "test_b01_truncation_to_the_high_watermark_loses_an_acked_record",
    ),
    Mutant(
        "A12",
        "a log that ends where the leader's starts is dropped",
        "cluster/truncation.py",
        "if leader_start > leo or not full_truncation_only_below_start:",
        "if leader_start >= leo or not full_truncation_only_below_start:",
        "tests/cluster/test_truncation.py::test_a12_every_small_input_does_what_the_sentences_say",
    ),
    Mutant(
        "A12",
        "a leader with less is not followed down",
        "cluster/replicating.py",
        "if answer.offset >= log.leo:",
        "if answer.offset >= 0:",
        "tests/cluster/test_follower_fetching.py::test_a12_a_leader_with_less_is_followed_down",
    ),
    # In-sync replicas --------------------------------------------------------------------------
    Mutant(
        "A13",
        "a member is out of sync at the limit, not behind it",
        "cluster/isr.py",
        "return follower_leo != leader_leo and now_us - caught_up_us > lag_max_us",
        "return follower_leo != leader_leo and now_us - caught_up_us >= lag_max_us",
        "tests/cluster/test_isr.py::"
        "test_a13_a_member_is_out_exactly_if_behind_and_not_caught_up_for_longer_than_the_limit",
    ),
    Mutant(
        "A13",
        "a member that leaves counts no more before the commit",
        "cluster/isr.py",
        "return frozenset(self.isr) | frozenset(self.proposed or ())",
        "return frozenset(self.proposed or self.isr)",
        "tests/cluster/test_isr_changes.py::"
        "test_a13_until_a_shrink_commits_the_leaving_member_counts",
    ),
    Mutant(
        "A13",
        "an answer with an older partition epoch counts",
        "cluster/isr_changes.py",
        "or answer.partition_epoch < leader.isr.partition_epoch",
        "or answer.partition_epoch < leader.isr.partition_epoch - 1",
        "tests/cluster/test_isr_changes.py::"
        "test_a13_a_success_must_match_the_leader_epoch_and_not_go_back",
    ),
    Mutant(
        "A13",
        "lagging members are looked for too seldom",
        "cluster/upkeep.py",
        '"isr-shrink": (max(1, config.replica_lag_time_max_ms // 2), self._shrink),',
        '"isr-shrink": (max(1, config.replica_lag_time_max_ms * 2), self._shrink),',
        "tests/cluster/test_isr_changes.py::"
        "test_a13_a_member_behind_for_longer_than_the_limit_leaves_within_half_as_much_again",
    ),
    Mutant(
        "A14",
        "the sender is judged before the leader epoch",
        "cluster/partition_control.py",
        "if leader_epoch < record.leader_epoch:",
        "if sender == record.leader and leader_epoch < record.leader_epoch:",
        "tests/cluster/test_controller_partitions.py::"
        "test_a14_a_stale_leader_epoch_is_fenced_before_leadership_is_looked_at",
    ),
    Mutant(
        "A14",
        "a partition epoch ahead of the controller's is taken",
        "cluster/partition_control.py",
        "if leader_epoch > record.leader_epoch or partition_epoch > record.partition_epoch:",
        "if leader_epoch > record.leader_epoch:",
        "tests/cluster/test_controller_partitions.py::"
        "test_a14_epochs_ahead_of_the_controller_are_not_its_own",
    ),
    Mutant(
        "A14",
        "a replica leaves under the same leader epoch",
        "cluster/partition_changes.py",
        "bumps = changed.leader != record.leader or choice.is_unclean or leaves",
        "bumps = changed.leader != record.leader or choice.is_unclean",
        "tests/cluster/test_partition_changes.py::"
        "test_a14_a_replica_that_leaves_raises_the_leader_epoch_of_the_same_leader",
    ),
    Mutant(
        "A14",
        "a change of the ISR keeps the partition epoch",
        "cluster/partition_changes.py",
        "partition_epoch=record.partition_epoch + 1,",
        "partition_epoch=record.partition_epoch + int(bumps),",
        "tests/cluster/test_partition_changes.py::"
        "test_a14_an_expansion_raises_the_partition_epoch_only",
    ),
)
