"""Arm's wheel ai_ml_sdk_scenario_runner in the folder of this package: both install an import package scenario_runner.

Whichever is installed last writes its ``__init__.py`` over the other's, and whichever is removed takes it along.
"""

import os
import sys

from scenario_runner.arm_glslc import WHEEL

FOLDER = os.path.dirname(os.path.abspath(__file__))
ARMS = WHEEL.partition(">")[0]
FIX = (
    f"pip uninstall {ARMS}, then install scenario-runner again with pip's --force-reinstall --no-deps; "
    "install Arm's package into an environment of its own"
)
_PROGRAMS = os.path.join(FOLDER, "binaries", "bin")  # pip leaves empty folders beside it when it removes the wheel


def are_mixed() -> bool:
    """Tell whether files of Arm's are in the folder, or ``__init__.py`` is not this program's."""
    return os.path.exists(_PROGRAMS) or not hasattr(sys.modules["scenario_runner"], "_HOME")


def problem() -> str | None:
    """Say which files are whose and what does not work, None where this package is alone in its folder."""
    package = sys.modules["scenario_runner"]
    if not are_mixed():
        return None
    if not package.__file__:
        return f"{FOLDER} lacks __init__.py, as after a removal of {ARMS}: 'import scenario_runner' gives no names"
    whose = (  # the folder cli/ hides Arm's cli.py, which its command imports
        f"{FOLDER} holds binaries/ and cli.py of {ARMS}, whose import package has the same name; "
        "Arm's command scenario_runner starts this program"
    )
    if hasattr(package, "_HOME"):
        return whose
    return f"{whose}, and 'import scenario_runner' gives Arm's names, not Runner or load: __init__.py is Arm's"
