"""The replication protocol as state machines: broker, controller, producer, consumer.

A machine takes time as an argument and hands out what leaves it as effects; this package knows no
clock, no chance, no task and no operating system. ``cluster/README.md`` has the house, the guards
and what is modelled of Kafka's rules.
"""

from cluster.broker import Broker
from cluster.config import (
    BrokerConfig,
    ConsumerConfig,
    ControllerConfig,
    ProducerConfig,
    TopicConfig,
)
from cluster.consumer import Consumer
from cluster.controller import Controller
from cluster.effects import Effects
from cluster.guards import Guards
from cluster.names import Now, TopicIdPartition
from cluster.producer import Producer

__all__ = [
    "Broker",
    "BrokerConfig",
    "Consumer",
    "ConsumerConfig",
    "Controller",
    "ControllerConfig",
    "Effects",
    "Guards",
    "Now",
    "Producer",
    "ProducerConfig",
    "TopicConfig",
    "TopicIdPartition",
]
