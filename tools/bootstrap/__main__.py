"""Set up this checkout for ``run`` or for ``test``: called by set_up.sh when a stamp is missing or out of date.

1. One set-up of a checkout at a time; whoever had to wait looks again.
2. The environment: made when there is none, or when what is there is unfinished, broken or of another checkout.
3. The packages, when the key (pyproject.toml and these files) is not the one they were installed with.
4. The machine: loader, driver and GLSL compiler, installed where that is ours to do, else named.
5. The stamp, which lets the next start skip all this. What is still missing stands in it as a path that does not exist.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scenario_runner import arm_glslc
from scenario_runner.system_packages import package_names

from .environment import Environment
from .machine import Machine
from .packages import advice, can_install, find, install, look
from .steps import SetUpError, say


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the lock of this checkout: a lock on the folder itself, so that no file is left behind."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another set-up of this checkout")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks: go on as if alone
        yield
    finally:
        os.close(descriptor)


def set_up(checkout: Path, level: str, key: str, machine: Machine) -> None:
    """Bring the checkout to `level`. Raises `SetUpError`."""
    environment = Environment(checkout, machine.environ)
    if not environment.was_installed(level, key):
        if not environment.is_sound():
            environment.create(machine)
        environment.install_package(level)
        environment.write_stamps(level, key, ["the machine was not looked at yet"])
    if level == "test" and arm_glslc.has_wheels():
        environment.install_glslc()

    lack = look(machine, level)
    for parts in (lack.installable(), lack.welcome):  # apart: a distribution may lack what is only welcome
        if parts and can_install(machine):
            try:
                install(machine, package_names("debian", parts))
            except SetUpError as error:
                say(str(error))
    lack = look(machine, level)
    if level == "run" and "glslang" in lack.parts and arm_glslc.has_wheels():
        environment.install_glslc()
        lack = lack.without_need_of("glslang")
    must_exist = [path for path in find(machine, level).values() if path is not None and path.startswith("/")]
    if environment.glslc.exists():
        must_exist.append(str(environment.glslc))
    environment.write_stamps(level, key, [*must_exist, *(f"missing: {part}" for part in lack.parts)])
    if lack.parts and level == "test":
        raise SetUpError(advice(machine, lack))
    if lack.parts:
        say(advice(machine, lack))  # what needs no device works all the same


def main(level: str, key: str) -> int:
    checkout = Path.cwd().resolve()
    try:
        with alone(checkout):
            set_up(checkout, level, key, Machine.this())
    except SetUpError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted; the next start goes on from here")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
