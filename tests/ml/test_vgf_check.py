"""Contradictions between the parts of a file, and damage: whatever the bytes, an error of ours or a file that is sound.

The tables are decoded by a C++ library, so the mutants are read in a child process: a crash there is a failure here.
"""

import json
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from vgf_samples import (
    FIXTURES,
    SAMPLED_IMAGE,
    SOUND_FILES,
    everything,
    fixture_bytes,
    legacy_constants,
    with_constants,
)

from scenario_runner.errors import FileError
from scenario_runner.ml.model_scenario import scenario_for
from scenario_runner.ml.vgf_file import find_problems, parse_vgf, read_vgf, unwritten_inputs
from scenario_runner.ml.vgf_model import GraphConstant, Slot, Vgf, describe, find_port
from tests.tables import cases

SOUND = parse_vgf(everything())


def said(vgf: Vgf) -> list[str]:
    """The problems of a file as text."""
    return [str(problem) for problem in find_problems(vgf, "m.vgf")]


def changed(table: str, index: int, **changes: Any) -> Vgf:
    """The sound file with one entry of one of its tables changed."""
    items = list(getattr(SOUND, table))
    items[index] = items[index]._replace(**changes)
    return SOUND._replace(**{table: tuple(items)})


def model(name: str) -> Vgf:
    """The fixture ``name``, read."""
    return read_vgf(FIXTURES / f"{name}.vgf")


def test_sound_files_have_no_problems() -> None:
    """Legal oddities are no contradictions."""
    assert said(SOUND) == []
    assert said(model("image")) == []
    # the converter repeats a slot for a result that is returned twice
    assert said(model("ends")) == []
    # segments may have the port numbers of their shaders, since descriptor sets give the bindings
    for inputs in ((Slot(0, 0), Slot(0, 2)), (Slot(0, 0), Slot(1, 1))):
        assert said(changed("segments", 3, inputs=inputs)) == []
    # the converter may not know a format: its sizes are not checked
    assert said(changed("resources", 6, format=-1)) == []
    assert said(changed("resources", 4, format=2**31 - 1, descriptor_type=SAMPLED_IMAGE)) == []


@pytest.mark.parametrize("part, index, fields, expected", cases(__file__, "contradictions.txt", "CHANGES"))
def test_a_contradiction_is_reported_once(part: str, index: str, fields: str, expected: str) -> None:
    """A changed entry is reported at the place with what was found and what was expected."""
    keys = {name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(fields).items()}
    assert said(changed(part, int(index), **keys)) == [f"m.vgf: {expected}"]


@pytest.mark.parametrize(
    "fields, expected",
    [
        (
            {"inputs": (Slot(0, 2**32 - 1),)},
            "inputs/0: the resource index is 4294967295, but the file has 8 of them",
        ),
        ({"constants": (GraphConstant(0, 2),)}, "constants/0: the constant index is 2, but the file has 2 of them"),
    ],
)
def test_a_wrong_index_of_a_segment(fields: dict[str, Any], expected: str) -> None:
    """An index beyond the end of a table is reported at the segment."""
    number = 3 if "inputs" in fields else 0
    assert said(changed("segments", number, **fields)) == [f"m.vgf: /segments/{number}/{expected}"]


def test_an_input_that_no_caller_can_supply_is_reported() -> None:
    """A shader that binds an input which the model does not list would read nothing."""
    assert said(SOUND._replace(inputs=())) == [
        f"m.vgf: {place}: uses resource {row}, an input that the model does not list as one"
        for place, row in (
            ("/segments/0/descriptor_sets/0/slots/0", 0),
            ("/segments/2/descriptor_sets/0/slots/0", 1),
            ("/segments/3/descriptor_sets/0/slots/0", 1),
        )
    ]


def test_segments_out_of_order_are_found() -> None:
    """A segment that reads a value written by a later segment is a problem."""
    first, second, *rest = SOUND.segments
    swapped = (second._replace(index=0), first._replace(index=1), *rest)
    model = SOUND._replace(segments=swapped)
    assert said(model) == []
    assert list(unwritten_inputs(model)) == [(swapped[0], Slot(1, 3))]
    assert list(unwritten_inputs(SOUND)) == []


def test_at_most_twenty_problems_are_listed() -> None:
    """A file that is wrong all over is not answered with a flood."""
    assert len(said(SOUND._replace(inputs=tuple(Slot(i, 99) for i in range(1000))))) == 20


SEEDS = [
    *(fixture_bytes(name) for name in SOUND_FILES),
    everything(),
    legacy_constants(with_constants([b"abc", b"d"]), [(1, -1, b"xyz"), (2, 0, b"e")], (0, 3, 0)),
]
NUMBERS = (0, 1, 2, 4, 0x7F, 0xFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)


def mutant(seed: int) -> bytes:
    """One of the sample files with a few bytes or numbers changed, parts copied over others, or its end cut off."""
    dice = random.Random(seed)
    content = bytearray(dice.choice(SEEDS))
    start = 0 if dice.random() < 0.2 else 128
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(start, len(content) - 8)
        match dice.randrange(6):
            case 0:
                content[at] = dice.randrange(256)
            case 1:
                content[at] ^= 1 << dice.randrange(8)
            case 2:
                struct.pack_into("<I", content, at & ~3, dice.choice(NUMBERS) & 0xFFFFFFFF)
            case 3:
                struct.pack_into("<H", content, at & ~1, dice.choice((0, 4, 8, 12, 0xFFFF, dice.randrange(64))))
            case 4:
                struct.pack_into("<Q", content, at & ~7, dice.choice(NUMBERS))
            case 5:
                source = dice.randrange(start, len(content) - 8)
                content[at : at + 4] = content[source : source + 4]
    if dice.random() < 0.05:
        del content[dice.randrange(len(content)) :]
    return bytes(content)


def survey(first: int, last: int) -> None:
    """Read mutants; print how many were read and how many refused. Run in the child."""
    read = refused = 0
    for seed in range(first, last):
        try:
            vgf = parse_vgf(mutant(seed))
        except FileError:
            refused += 1
        else:
            # What passes the checks is safe to use: no index of it leads nowhere.
            describe(vgf)
            scenario_for(vgf, "model.vgf")
            read += 1
    print(read, refused)


@pytest.mark.parametrize("count", [4000, pytest.param(200_000, marks=pytest.mark.heavy)])
def test_mutants_are_read_or_refused(count: int) -> None:
    """No mutant crashes the process or raises anything but FileError, and both outcomes occur."""
    code = f"import test_vgf_check; test_vgf_check.survey(0, {count})"
    here = Path(__file__).parent
    child = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=False)
    assert (child.returncode, child.stderr) == (0, "")
    read, refused = map(int, child.stdout.split())
    assert read + refused == count
    assert read > count // 10
    assert refused > count // 10


@pytest.mark.parametrize("name", SOUND_FILES)
def test_a_description_survives_json(name: str) -> None:
    """The description has only values that JSON can hold, keys included."""
    described = describe(model(name))
    assert json.loads(json.dumps(described)) == described


def test_a_convolution_is_described() -> None:
    """Names, formats, shapes and sizes of the model are spelled out."""
    described = describe(model("conv"))
    assert described["version"] == "0.5.0"
    assert described["inputs"] == [
        {
            "binding": 0,
            "names": ["x"],
            "resource_index": 1,
            "view_indices": [1],
            "descriptor_type": "VK_DESCRIPTOR_TYPE_TENSOR_ARM",
            "format": "VK_FORMAT_R32_SFLOAT",
            "shape": [1, 8, 8, 2],
        }
    ]
    assert described["constants"] == [
        {
            "index": 0,
            "resource_index": 0,
            "format": "VK_FORMAT_R32_SFLOAT",
            "shape": [4, 3, 3, 2],
            "sparsity_dimension": None,
            "size_bytes": 288,
        }
    ]
    (segment,) = described["segments"]
    assert (segment["type"], segment["module"], segment["dispatch_shape"]) == ("graph", "graph_partition_0", [0, 0, 0])
    assert segment["constants"] == [{"id": 0, "constant_index": 0}]


def test_sizes_of_code_and_resources_are_in_bytes() -> None:
    """Text counts its UTF-8 bytes, an image its texels, and an unknown size is null."""
    described = describe(SOUND)
    assert [m["code_size_bytes"] for m in described["modules"]] == [20, len("void main() {} // é".encode()), 12, 0]
    assert [m["language"] for m in described["modules"]] == ["SPIR-V", "GLSL", "HLSL", None]
    # 64 floats as tensor, buffer and tensor, 16 RGBA texels, an RGBA image, an unknown shape, 24 and 5 * 4 bytes.
    assert [r["size_bytes"] for r in described["resources"]] == [256, 256, 256, 256, 256, None, 24, 20]


def test_the_places_of_problems_are_places_of_the_description() -> None:
    """The pointer of a problem leads to an entry of the description."""
    (problem,) = find_problems(changed("segments", 1, module_index=0), "m.vgf")
    assert problem.pointer is not None
    entry = describe(SOUND)
    for part in problem.pointer.split("/")[1:]:
        entry = entry[int(part)] if isinstance(entry, list) else entry[part]
    assert entry["name"] == "segment_1"


def test_one_input_has_all_its_views() -> None:
    """An input seen as tensor and as buffer is one port with both rows, the model's own first."""
    vgf = model("mixed")
    x, y = vgf.input_ports
    assert (x.binding, x.name, y.binding, y.name) == (0, "x", 1, "y")
    assert x.view_indices[0] == x.resource_index == vgf.inputs[0].resource_index
    assert {vgf.resources[i].alias_group for i in x.view_indices} == {vgf.resources[x.resource_index].alias_group}
    assert {vgf.resources[i].descriptor_type for i in x.view_indices} == {7, 1000460000}
    # y is read by graphs only, so it has one row.
    assert len(y.view_indices) == 1


def test_an_output_that_a_later_segment_reads_has_both_rows() -> None:
    """An output and the intermediate that shares its memory are views of one port."""
    vgf = model("placeholder")
    shaded = vgf.output_ports[0]
    assert [vgf.resources[i].category for i in shaded.view_indices] == ["output", "intermediate"]


def test_a_result_returned_twice_is_one_port_with_two_names() -> None:
    """Equal slots are one port, which answers to each of its names."""
    ports = model("ends").output_ports
    assert [(port.binding, port.names) for port in ports] == [
        (2, ("sum", "sum_again")),
        (3, ("difference",)),
        (0, ("same",)),
    ]
    assert find_port(ports, "sum_again") is find_port(ports, "sum") is find_port(ports, 2)


def test_names_are_not_trusted_when_they_do_not_match_the_slots() -> None:
    """With more names than slots a port has a number only, and can be found by that."""
    ports = model("unused").input_ports
    assert [(port.binding, port.names) for port in ports] == [(1, ()), (2, ())]
    assert find_port(ports, "2") is ports[1]
    with pytest.raises(FileError, match=r"^the model has no input 'z'; its inputs: binding 1, binding 2$"):
        find_port(ports, "z")


def test_a_name_that_several_inputs_have_must_be_a_number() -> None:
    """Two inputs of one name are told apart by their bindings."""
    ports = model("ends")._replace(input_names=("x", "x")).input_ports
    with pytest.raises(FileError, match=r"^several inputs are called 'x': 'x' \(binding 0\), 'x' \(binding 1\)$"):
        find_port(ports, "x")
    assert find_port(ports, "1") is ports[1]


def test_an_absurd_number_is_no_port() -> None:
    """A key of thousands of digits is refused in no time, and so is a digit of another script."""
    for key in ("9" * 5000, "\u0661"):
        with pytest.raises(FileError, match="the model has no"):
            find_port(model("ends").input_ports, key)


def made(name: str) -> dict[str, Any]:
    """The scenario of a fixture, through JSON."""
    return json.loads(json.dumps(scenario_for(model(name), f"{name}.vgf")))


def resources(scenario: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """uid to (kind, resource)."""
    pairs = [next(iter(entry.items())) for entry in scenario["resources"]]
    assert len({body["uid"] for _, body in pairs}) == len(pairs)
    return {body["uid"]: (kind, body) for kind, body in pairs}


def test_a_placeholder_model_gets_a_complete_scenario() -> None:
    """Graph, input, outputs and shader are resources; one command binds them by number and fills the placeholder."""
    tensor = {"dims": [4, 16], "format": "VK_FORMAT_R32_SFLOAT"}
    assert made("placeholder") == {
        "resources": [
            {"graph": {"uid": "graph", "src": "placeholder.vgf"}},
            {"tensor": {"uid": "x", **tensor, "shader_access": "readonly", "src": "x.npy"}},
            {"buffer": {"uid": "shaded", "size": 256, "shader_access": "writeonly", "dst": "shaded.npy"}},
            {"tensor": {"uid": "sum", **tensor, "shader_access": "writeonly", "dst": "sum.npy"}},
            {
                "shader": {
                    "uid": "graph_partition_1",
                    "src": "graph_partition_1.comp",
                    "type": "GLSL",
                    "entry": "main",
                }
            },
        ],
        "commands": [
            {
                "dispatch_graph": {
                    "graph_ref": "graph",
                    "bindings": [
                        {"set": 0, "id": 0, "resource_ref": "x"},
                        {"set": 0, "id": 2, "resource_ref": "shaded"},
                        {"set": 0, "id": 3, "resource_ref": "sum"},
                    ],
                    "shader_substitutions": [{"shader_ref": "graph_partition_1", "target": "graph_partition_1"}],
                }
            }
        ],
    }


def test_an_image_has_width_before_height_and_the_sampler_of_the_file() -> None:
    """A model shape [1, H, W, C] becomes the scenario's dims [1, W, H, 1]."""
    found = resources(made("image"))
    assert found["picture"] == (
        "image",
        {
            "uid": "picture",
            "dims": [1, 8, 4, 1],
            "format": "VK_FORMAT_R32G32B32A32_SFLOAT",
            "min_filter": "LINEAR",
            "mag_filter": "NEAREST",
            "border_address_mode": "CLAMP_EDGE",
            "border_color": "INT_OPAQUE_WHITE",
            "shader_access": "image_read",
            "src": "picture.npy",
        },
    )
    assert found["mirrored"][1]["dst"] == "mirrored.dds"


def test_an_input_that_is_returned_is_one_resource() -> None:
    """An input that is also an output is bound once and written after the run under the output's name."""
    scenario = made("ends")
    found = resources(scenario)
    assert found["left"][1]["dst"] == "same.npy"
    assert found["left"][1]["shader_access"] == "readwrite"
    bindings = scenario["commands"][0]["dispatch_graph"]["bindings"]
    assert [b["id"] for b in bindings] == [0, 1, 2, 3]


def test_push_constants_get_data_and_a_size() -> None:
    """A module with push-constant ranges gets a raw_data resource, and the graph the size of them all."""
    scenario = scenario_for(parse_vgf(everything()), "m.vgf")
    found = resources(scenario)
    assert found["graph"][1]["push_constants_size"] == 16
    assert found["glsl_1_push_constants"] == (
        "raw_data",
        {"uid": "glsl_1_push_constants", "src": "glsl_1_push_constants.npy"},
    )
    assert scenario["commands"][0]["dispatch_graph"]["push_constants"] == [
        {"push_data_ref": "glsl_1_push_constants", "shader_target": "glsl_1"}
    ]


def test_a_placeholder_with_another_entry_point_is_spirv() -> None:
    """Only SPIR-V has entry points with another name than main."""
    found = resources(scenario_for(parse_vgf(everything()), "m.vgf"))
    assert found["absent_3"][1] == {"uid": "absent_3", "src": "absent_3.spv", "type": "SPIR-V", "entry": "entry"}


def test_hostile_names_become_plain_file_names() -> None:
    """A name from the file cannot lead out of the directory, collide or be endless."""
    vgf: Vgf = read_vgf(FIXTURES / "ends.vgf")
    names = ("../../etc/passwd", "graph", "..", "a\x1b[31m/b" + "c" * 500)
    found = resources(scenario_for(vgf._replace(input_names=names[:2], output_names=names[2:] * 2), "m.vgf"))
    assert list(found) == ["graph", "_.._etc_passwd", "graph_1", "unnamed", "a__31m_b" + "c" * 72]
