"""Judging liveness: a copy of a world is healed, and has so long to recover (FAULTS D.5).

The copy begins where the run ended; nothing of it reaches the run's world, trace or digest.
Workloads write on until everything holds that can hold under load, then they stop, and a reader
goes through every partition; open operations of clients go on all the time. The epochs must stand
still for one session time-out behind the last thing that came.

The bound is ``within`` and the longest time-out of the configuration (``longest_timeout_us``):
everything that recovers does so because a time-out ended, and then needs a few rounds. What a slow
disk still has to do when the load ends may take longer than that. So behind the load the bound
waits for whoever moves: it is put off until the ``backlog`` has reached no new least for one
longest time-out. What is missing then is proven impossible or a failure.

What is proven impossible is not waited for: a run that may not recover ends as soon as everything
else holds. Nor does a livelock that is seen behind the healing get the rest of the time.

Left out: what is right in detail (``predicates``, ``recoverability``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from attrs import define, field

from cluster.config import ConsumerConfig
from sim.checks import livelock
from sim.checks.judge import Judge
from sim.liveness import metastability
from sim.liveness.backlog import backlog
from sim.liveness.healing import Healing, core_of
from sim.liveness.looking import Looker
from sim.liveness.outcome import Outcome, Throughput
from sim.liveness.predicates import PREDICATES, Missing, missing
from sim.liveness.probes import Probes, final_reads
from sim.liveness.recoverability import Impossible, impossible, unlicensed
from sim.liveness.snapshot import Snapshot
from sim.liveness.twins import continuation
from sim.liveness.waiting import chain, chains
from sim.running.agreement import OracleFault, anomalies_of, disagreements
from sim.running.staging import Stage
from sim.scenario.model import Liveness
from sim.world import World

__all__ = ["judge_clients", "judge_liveness", "longest_timeout_us"]

LOOK_US: Final = 100_000
"""How often the world is looked at."""
REST_US: Final = 5_000_000
"""So much time there is at least once workloads have stopped."""
_CHECK: Final = "progress"
_STABLE: Final = "epochs-stable"


def longest_timeout_us(world: World) -> int:
    """The longest of the time-outs that recovery may have to wait for.

    Where a topic allows unclean elections, those that are looked for every so often are among them.
    """
    broker, controller = world.config.broker, world.config.controller
    found = [
        broker.broker_session_timeout_ms,
        controller.broker_session_timeout_ms,
        broker.replica_lag_time_max_ms,
        broker.request_timeout_ms,
        broker.replica_fetch_backoff_ms,
    ]
    for producer in world.producers.values():
        found.append(producer.config.delivery_timeout_ms)
    for consumer in world.consumers.values():
        found.append(consumer.config.request_timeout_ms)
    image = world.view().image()
    allowed = [world.config.topic.unclean_leader_election_enable]
    for topic in sorted(image.topic_ids):
        value = image.config(is_topic=True, resource=topic).get("unclean.leader.election.enable")
        allowed.append(value == "true")
    if any(allowed):
        found.append(controller.unclean_leader_election_interval_ms)
    return max(found) * 1_000


def _metadata_age_us(world: World) -> int:
    """How long a client may believe a broker outside the core that has not heard of its fall.

    Such a broker answers as if it led, with all that it has; its clients notice when they ask the
    next one, which they do once their metadata is of age.
    """
    found = [ConsumerConfig().metadata_max_age_ms]
    found += [each.config.metadata_max_age_ms for each in world.producers.values()]
    found += [each.config.metadata_max_age_ms for each in world.consumers.values()]
    return max(found) * 1_000


def judge_clients(world: World, judge: Judge, *, is_drained: bool) -> None:
    """What clients have seen, once the final readers are done; the judge has finished.

    Args:
        is_drained: they have reached the end everywhere, and not only given up.

    Raises:
        OracleFault: the layers of judgement disagree.
    """
    anomalies = anomalies_of(world, judge, is_drained=is_drained)
    found = disagreements(world, judge, anomalies, is_drained=is_drained)
    if found:
        raise OracleFault(found)


@define(eq=False)
class _Recovery:
    """One copy on its way.

    Attributes:
        livelocks: how often livelock was seen before.
        came: when each predicate that holds came to hold.
        took_us, last: how long it took under load, and which predicate came last.
        rest_us: how long it took from there on until all was quiet.
    """

    stage: Stage
    looker: Looker
    begun_us: int
    end_us: int
    livelocks: int
    came: dict[str, int] = field(factory=dict)
    now: Snapshot = field(factory=Snapshot)
    open: list[Missing] = field(factory=list)
    proofs: tuple[Impossible, ...] = ()
    took_us: int = 0
    rest_us: int = 0
    last: str = ""
    is_spent: bool = False

    @property
    def world(self) -> World:
        return self.stage.world

    def look(self) -> None:
        """Take a snapshot, and see what is missing."""
        self.now = self.looker.look()
        found, proofs = missing(self.now), impossible(self.now)
        self.proofs = tuple(each for each in proofs if each.explains(found))
        self.open = unlicensed(found, [each for each in self.proofs if each.is_certain])
        left = {each.predicate for each in self.open}
        for name in PREDICATES:
            if name in left:
                self.came.pop(name, None)
            else:
                self.came.setdefault(name, self.world.now_us)

    def go_on(self, until_us: int) -> None:
        """Let the world go on for a moment, at most so far."""
        world, most = self.world, self.stage.interpreter.events_max
        wrong = (each.partition for each in self.open if each.predicate == "writes-answered")
        self.looker.probes.ask(frozenset(wrong))
        if self.looker.readers is not None:
            self.looker.readers.begin()
        to_us = min(world.now_us + LOOK_US, until_us)
        while (due_us := world.next_us()) is not None and due_us <= to_us:
            world.step()
            if world.trace.count > most:
                self.is_spent = True
                return
        world.timeline.advance(to_us)
        self.looker.healing.keep_alive()

    def until(
        self, holds: Callable[[], bool], until_us: int, patience_us: int | None = None
    ) -> bool:
        """Go on until something holds; False where it does not in time.

        Args:
            patience_us: the time does not end before nothing has moved for so long; None where it
                ends in any case.
        """
        self.look()
        least = backlog(self.now)
        while not holds():
            if self.is_spent or self.is_circling or self.world.now_us >= until_us:
                return False
            self.go_on(until_us)
            self.look()
            left = backlog(self.now)
            if left < least and patience_us is not None:
                least = left
                until_us = max(until_us, self.world.now_us + patience_us)
        return True

    @property
    def is_circling(self) -> bool:
        """Whether livelock was seen since the healing: then there is nothing to wait for."""
        return livelock.count(self.stage.judge.scene) > self.livelocks

    @property
    def is_all_committed(self) -> bool:
        """Whether readers get all that leaders have; with too few in sync some stays hidden."""
        led = [each.log(each.leader or "") for each in self.now.partitions]
        return all(each is not None and each.high_watermark == each.end for each in led)

    def holds(self) -> bool:
        """Whether all holds that can."""
        return not self.open

    def holds_now(self) -> bool:
        """The same, however long epochs have stood still."""
        return all(each.predicate == _STABLE for each in self.open)

    @property
    def failed(self) -> list[Missing]:
        """What is missing and no proof covers, at the end."""
        found = unlicensed(self.open, self.proofs)
        # Epochs that moved a moment ago are told of only where that is all.
        return [each for each in found if each.predicate != _STABLE] or found

    def note_convergence(self) -> None:
        """It has converged, or is given up under load."""
        self.took_us = self.world.now_us - self.begun_us
        came = {name: at_us for name, at_us in self.came.items() if at_us > self.begun_us}
        came.pop(_STABLE, None)
        self.last = max(came, key=lambda name: came[name], default="")


def judge_liveness(
    played: Stage,
    wanted: Liveness,
    *,
    seed: int,
    on_world: Callable[[World], None] | None = None,
) -> Outcome:
    """Whether the cluster on a stage recovers; the stage itself stays as it is.

    Args:
        on_world: what was done to the world of the run before it began.
    """
    found = continuation(played, seed=seed, on_world=on_world)
    world, judge = found.world, found.judge
    before, began = len(judge.violations), world.trace.count
    healing = Healing(world, judge, core_of(world, wanted.core))
    healing.heal()
    age_us = _metadata_age_us(world) if healing.impaired else 0
    within_us = wanted.within_us + max(longest_timeout_us(world), age_us)
    found.interpreter.events_max += began
    looker = Looker(world, judge, healing, Probes(world))
    judge.scene.turns.clear()
    livelocks = livelock.count(judge.scene)
    recovery = _Recovery(found, looker, world.now_us, world.now_us + within_us, livelocks)
    throughput = _recover(recovery, wanted, played, seed)
    wrong = [] if found.beside.acting.passes_over else found.beside.failed[:1]
    _report(recovery, throughput)
    judge.finish()
    is_drained = recovery.holds() and not recovery.proofs and recovery.is_all_committed
    judge_clients(world, judge, is_drained=is_drained)
    word = _word(recovery)
    return Outcome(
        word=word,
        core=tuple(name for name in world.hosts if name in healing.core),
        within_us=within_us,
        took_us=recovery.took_us if word == "converged" else world.now_us - recovery.begun_us,
        rest_us=recovery.rest_us,
        last=recovery.last,
        proofs=recovery.proofs,
        chains=chains(recovery.now, recovery.failed),
        violations=tuple(judge.violations[before:]),
        facts=judge.facts,
        wrong=(*wrong, *_unmet(word, wanted)),
        throughput=throughput,
        ended_us=world.now_us,
        events=world.trace.count - began,
    )


def _recover(recovery: _Recovery, wanted: Liveness, played: Stage, seed: int) -> Throughput | None:
    """First under load, then at rest; throughput is measured in between."""
    beside, looker, throughput = recovery.stage.beside, recovery.looker, None
    beside.go_on(recovery.end_us)
    has_converged = recovery.until(recovery.holds_now, recovery.end_us)
    recovery.note_convergence()
    if has_converged and wanted.metastability:
        throughput = metastability.measure(recovery.stage, looker, played.scenario, seed)
        # The window is no part of the time that recovery may take.
        recovery.end_us += throughput.window_us
    rest_us = recovery.world.now_us
    beside.go_on(rest_us)
    looker.is_loaded, looker.readers = False, final_reads(recovery.world)
    age_us = _metadata_age_us(recovery.world) if looker.healing.impaired else 0
    patience_us = longest_timeout_us(recovery.world)
    last_us = max(recovery.end_us, rest_us + REST_US + age_us)
    if recovery.until(recovery.holds_now, last_us, patience_us):
        recovery.rest_us = recovery.world.now_us - rest_us
        if not has_converged:
            recovery.note_convergence()
            recovery.rest_us = 0
        # What breaks once more has the rest of the time, too.
        last_us = max(recovery.end_us, recovery.world.now_us)
        recovery.until(recovery.holds, last_us + recovery.now.stable_us + LOOK_US)
    return throughput


def _word(recovery: _Recovery) -> str:
    if recovery.is_spent:
        return "inconclusive"
    if recovery.failed:
        return "stuck"
    return "unavailable" if recovery.proofs else "converged"


def _unmet(word: str, wanted: Liveness) -> list[str]:
    if wanted.demand == "unavailable" and word in ("converged", "stuck"):
        found = "it converged" if word == "converged" else "what is missing is not impossible"
        return [f"liveness: demanded is a proof that the cluster may not recover, and {found}"]
    return []


def _report(recovery: _Recovery, throughput: Throughput | None) -> None:
    """A failure is a violation of I12 in the copy, one for each partition."""
    scene, event = recovery.stage.judge.scene, recovery.world.trace.count
    places = {str(each.partition): each.partition for each in scene.image.partitions()}
    told = set()
    for each in [] if recovery.is_spent else recovery.failed:
        if each.partition not in told:
            told.add(each.partition)
            place, detail = places.get(each.partition), chain(recovery.now, each)
            scene.report(_CHECK, place, "stuck", event, detail, predicate=each.predicate)
    for text in () if throughput is None else metastability.wrong(throughput):
        scene.report(_CHECK, None, "metastable", event, text, **_evidence(throughput))


def _evidence(throughput: Throughput | None) -> dict[str, Any]:
    return {} if throughput is None else throughput.plain()
