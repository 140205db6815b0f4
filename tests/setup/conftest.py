"""Machines made of a few files: a root folder with what a distribution would have put there."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tools.bootstrap.machine import Machine

FOLDER = "usr/lib/x86_64-linux-gnu"


@dataclass
class Tree:
    """A root folder in the making. Paths are written from it, without a leading slash."""

    root: Path
    environ: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/bin:/bin", "HOME": "/home/me"})

    def machine(self, *, system: str = "Linux", superuser: bool = False) -> Machine:
        return Machine(self.root, self.environ, system, "x86_64", superuser)

    def file(self, path: str, content: str = "", mode: int = 0o644) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")
        place.chmod(mode)
        return place

    def program(self, path: str) -> Path:
        return self.file(path, "#!/bin/sh\n", 0o755)

    def manifest(self, path: str, library: object, **more: object) -> Path:
        driver = {"library_path": library, "api_version": "1.3.0", **more}
        return self.file(path, json.dumps({"file_format_version": "1.0.0", "ICD": driver}))

    def loader(self) -> None:
        self.file(f"{FOLDER}/libvulkan.so.1")

    def mesa(self) -> Path:
        self.file(f"{FOLDER}/libvulkan_lvp.so")
        return self.manifest("usr/share/vulkan/icd.d/lvp_icd.x86_64.json", f"/{FOLDER}/libvulkan_lvp.so")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """An empty machine of the x86-64 Debian kind."""
    import sysconfig

    monkeypatch.setitem(sysconfig.get_config_vars(), "MULTIARCH", "x86_64-linux-gnu")
    (tmp_path / "root").mkdir()
    return Tree(tmp_path / "root")
