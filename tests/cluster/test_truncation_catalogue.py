"""The divergence catalogue of PROTOCOL C.2, played by real brokers, in every truncation mode.

Two brokers' logs are built apart; then the first is named leader in a new epoch, and both hear of
it. In the modes with epochs they end equal. In the older ones the cases that their rules get wrong
end different, and are listed so.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from cluster.truncation import TruncationMode
from tests.cluster.histories import EPOCH_MODES, MODES, History, first_difference, raw, violations


class Case(NamedTuple):
    """Two logs by runs of epochs, the offset up to which they agree, and how many are shared."""

    leader: str
    follower: str
    common: int
    shared: str = "1:2"
    shared_by: str = "b1"


CASES = {
    "a-behind-in-the-same-epoch": Case("1:3", "", 2),
    "b-behind-and-the-leader-newer": Case("2:2", "", 2),
    "c-longer-in-the-same-epoch": Case("", "1:2", 2, shared_by="b2"),
    "d-longer-with-a-newer-epoch": Case("", "2:2", 2),
    "e-fork-both-newer": Case("3:2", "2:2", 2),
    "f-leader-has-more-of-the-old-epoch": Case("1:1", "2:2", 2),
    "g-no-common-epoch": Case("3:2", "2:3", 0, shared=""),
    "several-epochs-on-both-sides": Case("3:2 5:2 7:1", "2:1 4:2 6:3", 2),
    "follower-has-epochs-inside-one-of-the-leader": Case("2:1 9:4", "3:1 4:1 5:1 6:1", 2),
}


def play(case: Case, mode: TruncationMode) -> History:
    """Shared records reach both; the rest is each broker's own; then ``b1`` leads."""
    history = History(2, mode=mode)
    if case.shared:
        epoch, count = (int(part) for part in case.shared.split(":"))
        history.lead(case.shared_by, ["b1", "b2"], epoch=epoch)
        history.write(case.shared_by, count, acks=-1)
        history.router.run_for(600)
        assert history.log("b1") == history.log("b2")
    history.build("b2", case.follower)
    history.build("b1", case.leader)
    if case.follower or case.leader:
        before = [history.log("b1"), history.log("b2")]
        limit = min(len(before[0]), len(before[1]))
        same = [a == b for a, b in zip(before[0], before[1], strict=False)]
        assert same[: case.common] == [True] * case.common
        assert not any(same[case.common : limit])
    history.lead_alone("b1", epoch=20, isr=["b1"])
    history.tell()
    history.heal()
    history.router.run_for(5_000)
    return history


@pytest.mark.parametrize("mode", EPOCH_MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", CASES)
def test_c2_divergence_ends_in_equal_logs(name: str, mode: TruncationMode) -> None:
    case = CASES[name]
    history = play(case, mode)
    history.write("b1", 1)
    history.router.run_for(5_000)

    assert history.log("b1") == history.log("b2")
    assert raw(history.broker("b1")) == raw(history.broker("b2"))
    assert history.high_watermark("b1") == history.high_watermark("b2") == history.leo("b1")
    for broker in history.names:
        assert violations(history.replica(broker)) == []
    assert len(history.truncations("b2")) <= len(case.follower.split()) + 2


@pytest.mark.parametrize("mode", EPOCH_MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", CASES)
def test_a10_no_truncation_goes_below_what_is_common(name: str, mode: TruncationMode) -> None:
    case = CASES[name]
    history = play(case, mode)

    cuts = [to for log_end, to in history.truncations("b2") if to < log_end]
    assert min(cuts, default=case.common) >= case.common


@pytest.mark.parametrize("name", CASES)
def test_a10_kip_101_goes_wrong_where_the_leader_has_more_of_an_older_epoch(name: str) -> None:
    history = play(CASES[name], TruncationMode.KIP_101)
    history.write("b1", 1)
    history.router.run_for(5_000)

    is_wrong = {
        "f-leader-has-more-of-the-old-epoch",
        "several-epochs-on-both-sides",
        "follower-has-epochs-inside-one-of-the-leader",
    }
    differs = first_difference(history, "b1", "b2") is not None
    assert differs == (name in is_wrong), history.draw("b1") + " / " + history.draw("b2")


@pytest.mark.parametrize("name", CASES)
def test_a11_high_watermark_mode_goes_wrong_where_it_covers_a_fork(name: str) -> None:
    history = play(CASES[name], TruncationMode.HIGH_WATERMARK)
    history.write("b1", 1)
    history.router.run_for(5_000)

    # Each broker committed its own tail while it led alone, so the high watermark covers the fork.
    forks = {name for name in CASES if name[0] in "efg" or name[1] != "-"}
    differs = first_difference(history, "b1", "b2") is not None
    assert differs == (name in forks), history.draw("b1") + " / " + history.draw("b2")


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_a10_equal_logs_are_not_cut_in_any_mode(mode: TruncationMode) -> None:
    history = History(2, mode=mode)
    history.lead("b1", ["b1", "b2"])
    history.write("b1", 5, acks=-1)
    history.router.run_for(600)
    before = raw(history.broker("b2"))
    history.lead("b1")
    history.router.run_for(2_000)

    assert raw(history.broker("b2")) == before == raw(history.broker("b1"))
    assert all(log_end == to for log_end, to in history.truncations("b2"))
