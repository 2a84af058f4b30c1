"""The replication protocol as state machines: replica, broker, controller, producer, consumer.

Nothing is here yet. The machines will take time as an argument and hand out what leaves them as
effects, so this package will know no clock, no chance, no task and no operating system.
"""
