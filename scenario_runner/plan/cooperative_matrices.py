"""Cooperative matrices of a module: the types that it declares and the products that it computes.

Source: SPV_KHR_cooperative_matrix; Vulkan specification, "Vulkan Environment for SPIR-V",
VUID-RuntimeSpirv-OpTypeCooperativeMatrixKHR-10163 and -OpCooperativeMatrixMulAddKHR-10060.
"""

from typing import Final, NamedTuple, TypeAlias

from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv.declarations import Declarations
from scenario_runner.shaders.spirv.types import Scalar

Sizes: TypeAlias = tuple[int | None, int | None, int | None]
Components: TypeAlias = tuple[frozenset[str], frozenset[str], frozenset[str], frozenset[str]]

ANY: Final[frozenset[str]] = frozenset()
_A, _B, _ACCUMULATOR = 0, 1, 2  # SPIR-V's Cooperative Matrix Use
_SATURATING: Final = 16  # bit of SPIR-V's Cooperative Matrix Operands, behind one for the sign of each matrix


class MatrixUse(NamedTuple):
    """A type of matrices, or a product A * B + C.

    ``words`` describe it. ``scope`` is SPIR-V's number, as in Vulkan. ``sizes`` are M, N and K, None if absent.
    ``components`` lists alternatives: the names allowed for the types of A, B, C and the result, or `ANY`.
    ``saturating`` is None for a type.
    """

    words: str
    scope: int
    sizes: Sizes
    components: tuple[Components, ...]
    saturating: bool | None = None


class _Matrix(NamedTuple):
    component: Scalar
    scope: int
    rows: int
    columns: int
    use: int

    def as_use(self) -> MatrixUse:
        """Return the need for this type alone; its integers may have any sign."""
        names = self.names(None)
        rows, columns = self.rows, self.columns
        words = f"{rows} x {columns} {self.component}"
        if self.use == _A:
            return MatrixUse(f"A of {words}", self.scope, (rows, None, columns), ((names, ANY, ANY, ANY),))
        if self.use == _B:
            return MatrixUse(f"B of {words}", self.scope, (None, columns, rows), ((ANY, names, ANY, ANY),))
        either: tuple[Components, ...] = ((ANY, ANY, names, ANY), (ANY, ANY, ANY, names))
        return MatrixUse(f"an accumulator of {words}", self.scope, (rows, columns, None), either)

    def names(self, signed: bool | None) -> frozenset[str]:
        """Return the names of the component type; None stands for both signs of an integer."""
        if self.component.is_float:
            return frozenset({str(self.component)})
        kinds = {True: ["int"], False: ["uint"], None: ["int", "uint"]}[signed]
        return frozenset(f"{kind}{self.component.width_bits}" for kind in kinds)


def matrix_uses(declarations: Declarations) -> tuple[MatrixUse, ...]:
    """List the matrix types and products of a module under a specialization.

    Raises `SpirvError` if the scope, a size or the use of a type is no constant.
    """
    index = declarations.index
    words = index.words
    types: dict[int, _Matrix] = {}
    for at in index.offsets[op.TYPE_COOPERATIVE_MATRIX]:
        what = f"an operand of the cooperative matrix type {words[at + 1]}"
        scope, rows, columns, use = (declarations.integer(id, at, what) for id in words[at + 3 : at + 7])
        component = declarations.type(words[at + 2], at)
        if isinstance(component, Scalar):
            types[words[at + 1]] = _Matrix(component, scope, rows, columns, use)
    if not types:
        return ()
    uses = dict.fromkeys(matrix.as_use() for matrix in types.values())
    values: dict[int, _Matrix] = {}  # a type is the first operand of instructions that make a value of it
    for at in index.instructions():
        count = words[at] >> 16
        matrix = types.get(words[at + 1]) if count > 2 else None
        if matrix is not None:
            values[words[at + 2]] = matrix
            if words[at] & 0xFFFF == op.COOPERATIVE_MATRIX_MUL_ADD and count > 5:
                operands = [values[id] for id in words[at + 3 : at + 6] if id in values]
                if len(operands) == 3:
                    uses[_product([*operands, matrix], words[at + 6] if count > 6 else 0)] = None
    return tuple(uses)


def _product(matrices: list[_Matrix], bits: int) -> MatrixUse:
    """Return the need for a product of A, B and C with its result; ``bits`` are its matrix operands."""
    a, b = matrices[:2]
    names = [matrix.names(bool(bits >> place & 1)) for place, matrix in enumerate(matrices)]
    shown = ", ".join(min(each) for each in names)
    words = f"a product of {a.rows} x {b.columns} x {a.columns} ({shown})"
    saturating = bool(bits & _SATURATING)
    components = (names[0], names[1], names[2], names[3])
    return MatrixUse(words, a.scope, (a.rows, b.columns, a.columns), (components,), saturating)
