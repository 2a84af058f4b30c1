"""Looking at logs without changing them: what ``python -m storage.dump`` shows.

``describe`` says what a path is and gives a view of it, plain data (``views``); ``text`` and
``as_json`` render it. Everything is read through ``storage.read_only``.
"""
