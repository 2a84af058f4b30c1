"""The simulators of other projects, doing what ours is measured at: messages between nodes.

In each, so many messages of 100 bytes are under way all the time; a node that gets one sends it
back, and every one takes 0.2 to 0.6 ms of virtual time. Nothing else goes on: no disk, no protocol.

* simpy (discrete events): processes, a ``Store`` as each node's inbox, random latency.
* detangle and simloom (deterministic asyncio): ``asyncio.Protocol`` over their simulated streams,
  which are FIFO, a connection of its own for each message, with their own defaults otherwise.

Left out: what they do beyond that (searching, shrinking, fault injection).
"""

from __future__ import annotations

import asyncio
import importlib
import platform
import random
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

__all__ = ["INSTALL", "SIMULATORS", "Simulator", "find_simulator"]

INSTALL = 'pip install -e ".[bench]"'

MESSAGE = bytes(100)
LATENCY_MIN_S = 0.0002
LATENCY_MAX_S = 0.0006
PORT = 7
_NO_LIMIT = 1 << 60

Run = Callable[[int], object]


@dataclass(frozen=True)
class Simulator:
    """An installed one; ``run`` delivers so many messages, in a world of its own."""

    name: str
    version: str
    run: Run


# simpy -----------------------------------------------------------------------------------------


def _with_simpy(simpy: Any, in_flight: int) -> Run:
    def run(count: int) -> None:
        environment = simpy.Environment()
        inboxes = [simpy.Store(environment) for _ in range(in_flight)]
        draw = random.Random(1).uniform
        done = environment.event()
        delivered = 0

        def under_way(inbox: Any, message: bytes) -> Any:
            yield environment.timeout(draw(LATENCY_MIN_S, LATENCY_MAX_S))
            inbox.put(message)

        def node(number: int) -> Any:
            nonlocal delivered
            inbox, peer = inboxes[number], inboxes[number ^ 1]
            environment.process(under_way(peer, MESSAGE))
            while True:
                message = yield inbox.get()
                delivered += 1
                if delivered == count:
                    done.succeed()
                environment.process(under_way(peer, message))

        for number in range(in_flight):
            environment.process(node(number))
        environment.run(until=done)
        assert delivered == count

    return run


# asyncio ---------------------------------------------------------------------------------------


class _Meter:
    """Counts what all nodes of one world are delivered; ``done`` is set at ``count``."""

    def __init__(self, count: int) -> None:
        self.delivered = 0
        self.count = count
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class _Node(asyncio.Protocol):
    """One end of a connection: sends back what it gets."""

    def __init__(self, meter: _Meter) -> None:
        self._meter = meter
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert len(data) == len(MESSAGE)
        meter = self._meter
        meter.delivered += 1
        if meter.delivered < meter.count:
            self._transport.write(data)
        elif meter.delivered == meter.count:
            meter.done.set_result(None)


async def _ping_pong(count: int, in_flight: int) -> int:
    loop = asyncio.get_running_loop()
    meter = _Meter(count)
    ends: list[Any] = []
    for number in range(in_flight):
        host = f"10.0.1.{number + 1}"
        ends.append(await loop.create_server(lambda: _Node(meter), host, PORT))
        transport, _ = await loop.create_connection(lambda: _Node(meter), host, PORT)
        ends.append(transport)
        transport.write(MESSAGE)
    await meter.done
    for end in ends:
        end.close()
    return meter.delivered


def _with_detangle(detangle: Any, in_flight: int) -> Run:
    net = detangle.NetConfig(latency=(LATENCY_MIN_S, LATENCY_MAX_S))

    def run(count: int) -> None:
        delivered = detangle.run(
            lambda: _ping_pong(count, in_flight), seed=1, net=net, max_steps=_NO_LIMIT
        )
        assert delivered >= count

    return run


def _with_simloom(simloom: Any, in_flight: int) -> Run:
    def run(count: int) -> None:
        async def main(world: Any) -> int:
            world.net.set_latency(LATENCY_MIN_S, LATENCY_MAX_S)
            return await _ping_pong(count, in_flight)

        assert simloom.run(main, seed=1).value >= count

    return run


# Finding them ----------------------------------------------------------------------------------

# name: how it is run, and the Python that it needs.
SIMULATORS: dict[str, tuple[Callable[[Any, int], Run], tuple[int, int]]] = {
    "simpy": (_with_simpy, (3, 8)),
    "detangle": (_with_detangle, (3, 10)),
    "simloom": (_with_simloom, (3, 12)),
}


def find_simulator(name: str, in_flight: int) -> Simulator | str:
    """The simulator with ``in_flight`` messages under way (an even number), or why it is absent."""
    make, needed = SIMULATORS[name]
    here = platform.python_version_tuple()
    if (int(here[0]), int(here[1])) < needed:
        return f"needs Python {needed[0]}.{needed[1]}, this is {platform.python_version()}"
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        return f"{error}; {INSTALL}"
    return Simulator(name, version(name), make(module, in_flight))
