"""``--version``: this program and what it stands on, as JSON with the keys that the reference runner prints."""

from __future__ import annotations

import json

from scenario_runner import __version__

_DEPENDENCIES = ("vulkan", "cffi", "numpy", "pydantic", "imageio", "rich")


def show_version() -> int:
    """Print versions and return 0."""
    from importlib.metadata import PackageNotFoundError, version

    dependencies: list[dict[str, str | None]] = []
    for name in _DEPENDENCIES:
        try:
            dependencies.append({"name": name, "version": version(name)})
        except PackageNotFoundError:
            dependencies.append({"name": name, "version": None})
    print(json.dumps({"version": __version__, "revision": f"v{__version__}", "dependencies": dependencies}, indent=2))
    return 0
