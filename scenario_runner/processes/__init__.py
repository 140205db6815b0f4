"""Isolated processes, and the needs of every process: signals, limits, progress, temporary files.

::

    Workers ──socket──▶ pool ──fork, or spawn──▶ worker ──▶ Task.run(item)
    (the user)          asks the Policy          may crash or hang

`workers` is the front. The pool starts, feeds, watches and ends the workers. Items are opaque to both.
"""
