"""What a trace tells, for people: made from its header, events and footer, and from nothing else.

``story`` reads a trace once and keeps what happened; ``timeline`` says it in lines, ``strips``
shows the logs, ``chains`` says why something was lost, ``columns`` shows single events. All of
these are plain data, which ``text`` prints; other viewers share them. No name of a node, topic or
fault is known here: a trace with other names gives the same text with other names.

Left out: judgement. What a check found is repeated, not re-found.
"""
