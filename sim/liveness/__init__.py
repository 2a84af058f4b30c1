"""Whether a cluster recovers once its faults are over (FAULTS D.5), and if not, why.

``judging.judge_liveness`` heals a copy of a world (``healing``), asks it for writes and reads
(``probes``), and lets it go on until every ``predicates`` holds. What is missing is either provably
impossible (``recoverability``), or a failure that is told as a chain of who waits for whom
(``waiting``). All three judge plain ``snapshot`` values, which ``looking`` takes.
"""
