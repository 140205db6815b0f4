"""``scenario-runner pack FILE… --output DIR``: scenarios with all that they read, as plain files."""

import argparse
import os

from scenario_runner.errors.text import counted, one_line, size_in_units
from scenario_runner.reduce.packing import pack, pack_archive


def main(options: argparse.Namespace) -> None:
    """Write the files and print the paths of the scenarios. Raises ScenarioError, FileError and UsageError."""
    output = options.output
    if options.zip:
        output = output if output.endswith(".zip") else f"{output.rstrip('/')}.zip"
        packed = pack_archive(options.files, output, dict(options.set))
    else:
        packed = pack(options.files, output, dict(options.set))
    for scenario in packed.scenarios:
        print(one_line(os.path.join(options.output, scenario) if not options.zip else f"{output}: {scenario}"))
    print(f"{counted(packed.file_count, 'file')}, {size_in_units(packed.size_bytes)}")
