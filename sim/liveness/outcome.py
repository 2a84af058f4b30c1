"""What came of asking a cluster to recover.

Left out: how it was found out (``sim.liveness.judging``).
"""

from __future__ import annotations

from typing import Any, Final

from attrs import evolve, field, frozen

from sim.checks.facts import Facts
from sim.checks.ledger import Loss
from sim.checks.violations import Violation
from sim.liveness.recoverability import Impossible

__all__ = ["WORDS", "Outcome", "Throughput"]

WORDS: Final[dict[str, str]] = {
    "converged": "everything holds that holds in a healthy cluster",
    "unavailable": "what is missing cannot come, which is proven",
    "stuck": "something is missing that could come",
    "inconclusive": "the budget of events ended first",
}


_QUIET_US: Final = 1_000_000


@frozen(kw_only=True)
class Throughput:
    """Records acknowledged in a window behind convergence.

    Attributes:
        window_us: its length.
        acked, twin: here, and in the run without faults.
        changes: how often an epoch or an ISR changed in it.
    """

    window_us: int
    acked: int
    twin: int
    changes: int

    def plain(self) -> dict[str, int]:
        """As ``result.json`` has it."""
        return {
            "window_us": self.window_us,
            "acked": self.acked,
            "acked_without_faults": self.twin,
            "changes": self.changes,
        }


@frozen(kw_only=True)
class Outcome:
    """See the module.

    Attributes:
        word: of ``WORDS``.
        core: the nodes that were healed, in order.
        within_us: the bound: what was demanded, and the longest time-out.
        took_us: from the healing until all held under load, or behind it where that was too much;
            to the end where it did not converge.
        last: the predicate that came last then; empty where everything held at once.
        rest_us: from the end of the load until all was quiet and read.
        proofs: why what is missing cannot come.
        chains: who waits for whom, where it could.
        violations: of rules, found behind the end of the run.
        losses: behind the end of the run, of what it had not lost by then: each with how many
            records, and of which kinds (``Facts.standing_losses``). Their events are the copy's.
        facts: of the copy, for as long as nobody has asked for its losses.
        wrong: why this fails the run although no rule is broken.
        throughput: where it was asked for.
        ended_us: virtual time of the copy at its end.
        events: of the copy.
    """

    word: str
    core: tuple[str, ...]
    within_us: int
    took_us: int
    last: str = ""
    rest_us: int = 0
    proofs: tuple[Impossible, ...] = ()
    chains: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()
    losses: tuple[tuple[Loss, int, tuple[str, ...]], ...] = ()
    facts: Facts | None = field(default=None, repr=False, eq=False)
    wrong: tuple[str, ...] = ()
    throughput: Throughput | None = None
    ended_us: int = 0
    events: int = 0

    def beyond(self, run: Facts) -> Outcome:
        """The same with the losses that the run's judge, which has finished, does not know."""
        if self.facts is None:
            return self
        return evolve(self, losses=tuple(self.facts.standing_losses(run)), facts=None)

    def lines(self) -> list[str]:
        """For people: what came of it, then why."""
        took = f"{self.took_us / 1e6:.1f} s"
        if self.word == "converged":
            last = f"; {self.last} came last" if self.last else ""
            if self.rest_us > _QUIET_US:
                last += f"; everything was read {self.rest_us / 1e6:.1f} s later"
            found = [f"converged {took} behind the end of all faults{last}"]
        elif self.word == "unavailable":
            found = [f"unavailable, licensed: {each}" for each in self.proofs]
        elif self.word == "stuck":
            found = [f"not converged {took} behind the end of all faults"]
            found += self.chains
        else:
            found = [
                f"inconclusive: the budget of events ended {took} behind the end of all faults"
            ]
        for loss, records, _ in self.losses:
            what = "1 record of" if records == 1 else f"{records} records of"
            found.append(f"{what} {loss.partition} lost, {loss.licence}: {loss.rule}")
        if self.throughput is not None:
            each = self.throughput
            found.append(
                f"{each.acked} records acknowledged in the {each.window_us / 1e6:g} s behind "
                f"convergence, {each.twin} without faults; {each.changes} changes of epochs or ISRs"
            )
        return found

    def plain(self) -> dict[str, Any]:
        """As ``result.json`` has it."""
        return {
            "outcome": self.word,
            "core": list(self.core),
            "within_us": self.within_us,
            "took_us": self.took_us,
            "last": self.last,
            "rest_us": self.rest_us,
            "unavailable": [
                {
                    "kind": each.kind,
                    "partition": each.partition,
                    "node": each.node,
                    "text": each.text,
                    "culprits": [
                        {"text": one.text, "event": one.event or None, "fault": one.fault or None}
                        for one in each.culprits
                    ],
                }
                for each in self.proofs
            ],
            "chains": list(self.chains),
            "violations": [each.plain() for each in self.violations],
            "losses": [{**loss.plain(), "count": records} for loss, records, _ in self.losses],
            "wrong": list(self.wrong),
            "throughput": None if self.throughput is None else self.throughput.plain(),
            "events": self.events,
        }
