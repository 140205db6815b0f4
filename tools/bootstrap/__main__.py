"""Set up this checkout for ``run`` or for ``test``: called by set_up.sh when a stamp is missing or out of date.

1. Lock the checkout, so that only one set-up runs at a time.
2. Make the environment if it is missing, unfinished, broken or made for another checkout.
3. Install the packages if the key (of pyproject.toml and these files) has changed.
4. Look at the machine: install parts that `doctor` misses if this program may do so, otherwise name them.
5. Write the stamp, which lets the next start skip these steps. A missing part is a path in it that does not exist.
"""

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scenario_runner.errors import installation
from scenario_runner.errors.installation import package_names

from .environment import Environment
from .machine import Lack, can_install, examine, find, install, look
from .steps import SetUpError, say


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a lock on the checkout's folder, which leaves no file behind."""
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


def set_up(checkout: Path, level: str, key: str) -> None:
    """Set up the checkout for `level`. Raises `SetUpError`."""
    environment = Environment(checkout, os.environ)
    if not environment.was_installed(level, key):
        if not environment.is_sound():
            environment.create()
        environment.install_package(level)
        environment.write_stamps(level, key, ["the machine was not looked at yet"])
    if installation.has_arm_wheels():
        environment.install_glslc()  # for shaders with tensors

    report = examine(environment.python)
    lack = look(report, level)
    if can_install() and (lack.installable or lack.welcome):
        for parts in (lack.installable, lack.welcome):  # separately: a distribution may lack welcome parts
            try:
                install(package_names("debian", parts))
            except SetUpError as error:
                say(str(error))
        report = examine(environment.python)
        lack = look(report, level)
    if level == "run" and "glslang" in lack.needed and environment.glslc.exists():
        lack = Lack(tuple(each for each in lack.needed if each != "glslang"), ("glslang", *lack.welcome), lack.hint)
    paths = [path for path in find(report, level).values() if path and path.startswith("/")]
    if environment.glslc.exists():
        paths.append(str(environment.glslc))
    environment.write_stamps(level, key, [*paths, *(f"missing: {part}" for part in lack.needed)])
    if lack.needed and level == "test":
        raise SetUpError(lack.advice())
    if lack.needed:
        say(lack.advice())  # commands without a device still work


def main(level: str, key: str) -> int:
    checkout = Path.cwd().resolve()
    try:
        with alone(checkout):
            set_up(checkout, level, key)
    except SetUpError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted; the next start goes on from here")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
