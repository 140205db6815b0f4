"""What this machine has: a Vulkan loader, a driver's manifest, programs. Looks at files only; starts nothing."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scenario_runner.system_packages import family_here

# A manifest is a few hundred bytes; whatever is larger than this is something else.
MANIFEST_BYTES_MAX = 1 << 20


@dataclass(frozen=True)
class Machine:
    """Where to look. Tests give a folder of their own as `root`; everything else reads the machine in front of us."""

    root: Path
    environ: Mapping[str, str]
    system: str
    architecture: str
    is_superuser: bool

    @classmethod
    def this(cls) -> Machine:
        return cls(Path("/"), os.environ, platform.system(), platform.machine(), os.geteuid() == 0)

    def distribution(self) -> str | None:
        """The family whose package names apply, a key of `system_packages.FAMILIES`; None for any other system."""
        return family_here(self.root, "darwin" if self.system == "Darwin" else "linux")

    def loader(self) -> str | None:
        """The Vulkan loader (on macOS MoltenVK can stand in for it): its path, or its name where only dlopen knows."""
        names = ["libvulkan.so.1", "libvulkan.so"]
        if self.system == "Darwin":
            names = ["libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"]
        return next((found for name in names if (found := self.library(name))), None)

    def library(self, name: str) -> str | None:
        """Where the dynamic linker would find the library `name`."""
        for folder in self._library_folders():
            if (folder / name).is_file():
                return str(folder / name)
        if self.root == Path("/"):
            # The linker's cache knows places that we do not (Nix, Guix, vendor folders); what it finds is the truth.
            try:
                ctypes.CDLL(name)
            except OSError:
                return None
            return name
        return None

    def driver(self) -> Path | None:
        """The first usable driver manifest among those that the Vulkan loader reads."""
        return next((path for path in self._manifests() if self.is_usable(path)), None)

    def overrides(self) -> str | None:
        """The environment variable that keeps the Vulkan loader from the standard folders, where one is set."""
        return next((name for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES") if self.environ.get(name)), None)

    def stray_driver(self) -> Path | None:
        """A usable manifest where vendors' container set-ups leave it and the Vulkan loader does not look."""
        paths = sorted(self.root.glob("usr/local/*/share/vulkan/icd.d/*.json"))
        return next((path for path in paths if self.is_usable(path)), None)

    def validation_layer(self) -> Path | None:
        """The manifest of the Khronos validation layer, in the folders that the Vulkan loader reads."""
        places = [*self._paths("VK_ADD_LAYER_PATH"), *self._paths("VK_LAYER_PATH")]
        if not self.environ.get("VK_LAYER_PATH"):
            places += self._standard_folders("explicit_layer.d")
        found = (place / "VkLayer_khronos_validation.json" for place in places)
        return next((path for path in found if path.is_file()), None)

    def c_compiler(self) -> Path | None:
        """A C compiler that finds the C library's headers. One outside the system's folders brings its own."""
        compiler = self.program("cc", "gcc", "clang")
        if compiler is None or self.system == "Darwin":
            return compiler
        ours = compiler.parent in (self.root / "usr/bin", self.root / "bin")
        return None if ours and not (self.root / "usr/include/stdio.h").is_file() else compiler

    def program(self, *names: str) -> Path | None:
        """The first program on PATH that has one of the `names`."""
        for folder in self._paths("PATH"):
            for name in names:
                if (folder / name).is_file() and os.access(folder / name, os.X_OK):
                    return folder / name
        return None

    def is_usable(self, manifest: Path) -> bool:
        """Whether this is a driver manifest whose library exists and is made for this kind of processor."""
        try:
            if manifest.stat().st_size > MANIFEST_BYTES_MAX:
                return False
            driver = json.loads(manifest.read_bytes())["ICD"]
            library = driver["library_path"]
            bits = driver.get("library_arch", "64")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return False
        if not isinstance(library, str) or not library or "\0" in library or bits != "64":
            return False
        if "/" not in library:
            return self.library(library) is not None
        return (self._inside(library) if library.startswith("/") else manifest.parent / library).is_file()

    def _inside(self, path: str) -> Path:
        return self.root / path.lstrip("/") if path.startswith("/") else Path(path)

    def _paths(self, variable: str, default: str = "") -> Iterator[Path]:
        for entry in (self.environ.get(variable) or default).split(os.pathsep):
            if entry:
                yield self._inside(entry)

    def _library_folders(self) -> Iterator[Path]:
        yield from self._paths("DYLD_LIBRARY_PATH" if self.system == "Darwin" else "LD_LIBRARY_PATH")
        if self.system == "Darwin":
            yield from (self._inside(folder) for folder in ("/opt/homebrew/lib", "/usr/local/lib"))
            return
        triplet = sysconfig.get_config_var("MULTIARCH") or f"{self.architecture}-linux-gnu"
        for folder in ("usr/local/lib", "lib", "usr/lib"):
            yield self.root / folder / triplet
            yield self.root / folder
        yield from (self.root / folder for folder in ("lib64", "usr/lib64", "usr/local/lib64"))

    def _manifests(self) -> Iterator[Path]:
        override = self.overrides()
        places = [
            *self._paths("VK_ADD_DRIVER_FILES"),
            *(self._paths(override) if override else self._standard_folders("icd.d")),
        ]
        for place in places:
            if place.suffix == ".json":
                yield place
            else:
                yield from sorted(place.glob("*.json"))

    def _standard_folders(self, name: str) -> Iterator[Path]:
        """The folders called `name` ("icd.d", "explicit_layer.d") that the Vulkan loader reads, in its order.

        Source: the loader's documentation, "Driver Discovery" and "Layer Discovery" on Linux and on macOS.
        """
        home = self.environ.get("HOME", "")
        mac = self.system == "Darwin"
        bases = [
            *self._paths("XDG_CONFIG_HOME", f"{home}/.config" if home else ""),
            *self._paths("XDG_CONFIG_DIRS", "/etc/xdg"),
            *(self._inside(folder) for folder in ("/usr/local/etc", "/etc", *(["/opt/homebrew/etc"] if mac else []))),
            *self._paths("XDG_DATA_HOME", f"{home}/.local/share" if home else ""),
            *self._paths("XDG_DATA_DIRS", "/usr/local/share:/usr/share"),
            *(self._inside(folder) for folder in (["/opt/homebrew/share", "/usr/local/share"] if mac else [])),
        ]
        yield from (base / "vulkan" / name for base in bases)
