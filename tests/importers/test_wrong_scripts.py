"""Wrong scripts of Amber: one error with file and line each, and the other scripts are imported."""

from pathlib import Path

import pytest

from scenario_runner.errors import FileError
from tests.importers.test_amber import COMPUTE, PAINT, RUN, VKSCRIPT, add
from tests.program import Program

VIRTUAL = """\
VIRTUAL_FILE NAME
END
SHADER compute s HLSL VIRTUAL_FILE NAME
PIPELINE compute p
  ATTACH s
END
RUN p 1 1 1
"""
WRONG = {
    "unknown": ("RUNS pipeline 1 1 1", "15: unknown command 'RUNS' (did you mean 'RUN'?)"),
    "number": ("RUN pipeline 1 one 1", "15: a number of workgroups must be an integer, not 'one'"),
    "name": ("EXPECT number IDX 0 EQ 1", "15: there is no buffer 'number' (did you mean 'numbers'?)"),
    "words": ("RUN pipeline 1 1 1 1", "15: unexpected '1' at the end of the line"),
    "end": ("REPEAT 2\nRUN pipeline 1 1 1", "15: the END of this statement is missing"),
    "type": ("BUFFER b DATA_TYPE int33 SIZE 1 FILL 0", "15: unknown or impossible type 'int33'"),
    "file": ("BUFFER b DATA_TYPE int8 SIZE 1 FILE TEXT none.txt", "15: the file 'none.txt' does not exist"),
    "rectangle": (
        PAINT + "EXPECT picture IDX 4 0 SIZE 5 4 EQ_RGB 0 0 0\nRUN pipeline DRAW_RECT POS 0 0 SIZE 1 1",
        "28: the rectangle ends outside of the 8 x 4 texels",
    ),
    "channel": ("CLEAR_COLOR pipeline 0 0 256 0", "15: a channel must be from 0 to 255, not 256"),
    "empty name": ('BUFFER "" DATA_TYPE int8 DATA 1 END', "15: the name is empty"),
    "digits": (f"RUN pipeline {'9' * 5000} 1 1", "15: a number of workgroups must be an integer, not '999999999"),
    "range": (f"RUN pipeline {'9' * 20} 1 1", "15: a number of workgroups must be from 0 to 1073741824, not 999"),
    "negative": ("EXPECT numbers IDX 0 TOLERANCE -1 EQ 1", "15: a tolerance must not be negative, not '-1'"),
    "infinite": ("CLEAR_DEPTH pipeline nan", "15: the depth must be finite, not 'nan'"),
    "odd file": ("BUFFER b DATA_TYPE vec4<int32> FILE BINARY good.amber", "15: the file has "),
    "folder": ("BUFFER b DATA_TYPE int8 FILE BINARY .", "15: the file '.' cannot be read: is a directory"),
    "device": (
        "BUFFER b DATA_TYPE int8 FILE BINARY /dev/zero",
        "15: the file '/dev/zero' cannot be read: it has more ",
    ),
    "series": (
        "BUFFER b DATA_TYPE int8 SIZE 100000000 SERIES_FROM 1 INC_BY 1",
        "15: 'b' has 100000000 elements, which is more than an import can count",
    ),
    "own struct": ("STRUCT s\n s a\nEND", "15: unknown type 's'"),
    "large struct": (
        "STRUCT s\n int8 a\nEND\n" + "STRUCT s\n s a\n s b\nEND\n" * 40,
        "82: the struct has 131072 numbers, expected 1 to 65536",
    ),
    "two members": (
        "STRUCT s\n int8 a\n int8 b OFFSET 0\nEND",
        "15: two members of the struct begin at the same byte",
    ),
    "wide struct": (
        "STRUCT s\n int8 a OFFSET 1073741824\nEND\nBUFFER b DATA_TYPE s DATA 1 2 END",
        "18: the values fill more than 1 GiB",
    ),
    "stride": ("STRUCT s STRIDE 2\n int32 a\nEND", "15: the stride of 2 bytes is less than the 4 bytes of the struct"),
    "nested": ("REPEAT 2\n" * 3000, "31: more than 16 repetitions are nested"),
    "level": (
        PAINT.replace("LOCATION 0\n", "LOCATION 0 BASE_MIP_LEVEL 99\n"),
        "26: the level must be from 0 to 31, not 99",
    ),
    "no content": (
        "BUFFER b DATA_TYPE int8 SIZE 0 FILL 0\nDERIVE_PIPELINE p FROM pipeline\nBIND BUFFER b AS push_constant\nEND\n"
        "RUN p 1 1 1",
        " the buffer 'b' has no size",
    ),
    "texels": (
        "BUFFER b FORMAT R8_UINT DATA 1 2 3 END\nIMAGE i FORMAT R8_UINT DIM_2D WIDTH 2 HEIGHT 2 FILL 1\nCOPY b TO i",
        " the image 'b' has 3 texels, expected 2 x 2",
    ),
    "rows": (
        "IMAGE i FORMAT R8_UINT DIM_2D WIDTH 2 HEIGHT 2 FILL 1\nEXPECT i IDX 3 EQ 1 2",
        "16: 'i' ends before the values",
    ),
    "own file": (VIRTUAL.replace("NAME", "check.json"), " the file 'check.json' has the name of another file"),
    "file in a file": (
        "VIRTUAL_FILE a/b\nEND\n" + VIRTUAL.replace("NAME", "a"),
        " the file 'a' has the name of another file",
    ),
    "offset": ("EXPECT numbers IDX 2 EQ 1", "15: the offset 2 is not a multiple of the 4 bytes of an element"),
}


@pytest.mark.parametrize("text, message", WRONG.values(), ids=WRONG)
def test_a_wrong_script(program: Program, tmp_path: Path, text: str, message: str) -> None:
    """An error names the file and the line, and the other scripts are imported."""
    add(tmp_path, "good.amber", COMPUTE)
    add(tmp_path, "wrong.amber", COMPUTE.replace("PIPELINE compute pipeline", "PIPELINE compute other", 0) + text)
    ended = program("import", "amber", "scripts", "--output", "suite", exit_code=FileError.exit_code)
    first, *help = ended.err.splitlines()
    assert first.startswith(f"error: scripts/wrong.amber:{message}")
    assert first.endswith("[SR-IMPORT-001]")
    assert len(first) < 250
    assert all(line.startswith("  help: ") for line in help)
    assert "1 imported, 0 not supported, 0 expected to fail, 1 error in " in ended.out
    assert [path.name for path in (tmp_path / "suite").iterdir()] == ["good.amber"]


WRONG_VKSCRIPT = {
    "ssbo -1:0 subdata float 0 1": "the descriptor set must be from 0 to 1073741824, not -1",
    "tolerance -1": "a tolerance must not be negative, not '-1'",
    "tolerance": "there are 0 tolerances, expected 1 or 4",
    "probe rect rgb (-1, 0, 1, 1) (0, 0, 0)": "a rectangle begins at -1, outside of the framebuffer",
    "polygonMode ROUND": "unexpected 'ROUND', expected VK_POLYGON_MODE_FILL or ",
    "depthCompareOp X": "unexpected 'X', expected VK_COMPARE_OP_NEVER or ",
    "draw arrays indexed GL_TRIANGLES 0 3": "the script has no indices",
    "[test": "unknown command '[test'",
}


def test_wrong_vkscripts(program: Program, tmp_path: Path) -> None:
    """Each wrong line is reported."""
    for number, text in enumerate(WRONG_VKSCRIPT):
        add(tmp_path, f"{number}.vkscript", VKSCRIPT + text)
    ended = program("import", "amber", "scripts", "--output", "suite", exit_code=FileError.exit_code)
    for number, message in enumerate(WRONG_VKSCRIPT.values()):
        assert f"error: scripts/{number}.vkscript:12: {message}" in ended.err
    assert f" {len(WRONG_VKSCRIPT)} errors in " in ended.out


def test_files_of_scripts(program: Program, tmp_path: Path) -> None:
    """A byte order mark and line ends change nothing. Bytes that are no text, and large files, are errors."""
    text = f"\N{BYTE ORDER MARK}#!amber\n{RUN}4 EQ 4"
    (tmp_path / "scripts").mkdir()
    for name, content in {
        "mark.amber": text.encode(),
        "größe und ☃.amber": text.replace("\n", "\r\n").encode(),
        "bytes.amber": bytes(range(256)),
        "large.amber": b"#!amber\n".ljust((4 << 20) + 1, b"\n"),
    }.items():
        (tmp_path / "scripts" / name).write_bytes(content)
    (tmp_path / "scripts/missing.amber").symlink_to("nothing")
    ended = program("import", "amber", "scripts", "--output", "suite", exit_code=FileError.exit_code)
    assert ended.out.startswith("2 imported, 0 not supported, 0 expected to fail, 3 errors in ")
    assert "error: scripts/bytes.amber:1: expected a section such as [test], or #!amber" in ended.err
    assert "error: scripts/large.amber: cannot be read: it has more than 4 MiB [SR-IMPORT-001]" in ended.err
    assert "error: scripts/missing.amber: cannot be read: no such file or directory [SR-IMPORT-001]" in ended.err
