"""The version of Leaderfall, installed or not.

Left out: versions of anything else.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["leaderfall_version"]


def leaderfall_version() -> str:
    """Of the installed distribution, or of the checkout that this is; ``unknown`` for neither."""
    checkout = Path(__file__).resolve().parents[1] / "pyproject.toml"
    if checkout.is_file():
        import tomllib

        try:
            project = tomllib.loads(checkout.read_text(encoding="utf-8"))["project"]
            if project["name"] == "leaderfall":
                return str(project["version"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("leaderfall")
    except PackageNotFoundError:
        return "unknown"
