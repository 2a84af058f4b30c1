"""``python -m sim.cli``: the same as ``leaderfall``.

Left out: everything.
"""

from __future__ import annotations

from sim.cli.main import main

if __name__ == "__main__":
    main()
