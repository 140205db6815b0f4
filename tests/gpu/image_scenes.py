"""Images in scenes, shaders that read and write them, and formats."""

from typing import Any

import numpy

from scenario_runner import Runner
from scenario_runner.files.vk_formats import Format, format_named
from tests.scenes import Scene, glsl

# What an image2D of a kind of format is called in GLSL: prefix and layout qualifier.
LAYOUTS = {
    "R8G8B8A8_UNORM": ("", "rgba8"),
    "R8G8B8A8_SNORM": ("", "rgba8_snorm"),
    "R8G8B8A8_UINT": ("u", "rgba8ui"),
    "R8G8B8A8_SINT": ("i", "rgba8i"),
    "R16_SFLOAT": ("", "r16f"),
    "R16G16B16A16_SFLOAT": ("", "rgba16f"),
    "R16G16B16A16_UINT": ("u", "rgba16ui"),
    "R32_UINT": ("u", "r32ui"),
    "R32_SINT": ("i", "r32i"),
    "R32_SFLOAT": ("", "r32f"),
    "R32G32_SFLOAT": ("", "rg32f"),
    "R32G32B32A32_SFLOAT": ("", "rgba32f"),
    "R32G32B32A32_UINT": ("u", "rgba32ui"),
    "R32G32B32A32_SINT": ("i", "rgba32i"),
}


def format_of(name: str) -> Format:
    """A format by its name without the prefix."""
    return format_named(f"VK_FORMAT_{name}")


def storage(binding: int, name: str, variable: str, access: str = "") -> str:
    """The declaration of a storage image of this format."""
    prefix, layout = LAYOUTS[name]
    return f"layout(set = 0, binding = {binding}, {layout}) uniform {access} {prefix}image2D {variable};\n"


def per_texel(body: str, declarations: str, size_of: str = "dst") -> str:
    """A shader that runs ``body`` with ``ivec2 p`` for each texel of an image; one texel a workgroup."""
    return glsl(f"ivec2 p = ivec2(gl_WorkGroupID.xy); ivec2 size = imageSize({size_of}); {body}", declarations)


def texels(name: str, width: int, height: int, seed: int = 1) -> Any:
    """Any texels of a format: (height, width, items), finite where they are floating-point."""
    format = format_of(name)
    assert format.numpy_dtype is not None
    dtype = numpy.dtype(format.numpy_dtype)
    shape = (height, width, format.numpy_items)
    random = numpy.random.default_rng(seed)
    if dtype.kind == "f":
        return (random.random(shape) * 4 - 2).astype(dtype)
    data = random.integers(0, 256, (*shape[:2], format.numpy_items * dtype.itemsize), dtype=numpy.uint8)
    data = data.view(dtype).reshape(shape)
    # the lowest SNORM integer means -1.0 as well, and comes back as the other one
    return numpy.maximum(data, numpy.iinfo(dtype).min + 1) if format.numeric == "snorm" else data


def fetched(
    scene: Scene,
    runner: Runner,
    name: str,
    content: Any = None,
    *,
    into: str = "R32G32B32A32_SFLOAT",
    sampler: str = "sampler2D",
    texel: str = "vec4(texelFetch(src, p, 0))",
    **keys: Any,
) -> Any:
    """Run a shader that stores ``texel`` in the image "dst" for each texel of the sampled image "src"; return "dst"."""
    declarations = f"layout(set = 0, binding = 0) uniform {sampler} src;\n" + storage(1, into, "dst")
    scene.shader("fetch", per_texel(f"imageStore(dst, p, {texel});", declarations))
    scene.image("src", name, content, **{"shader_access": "readonly", **keys})
    _, width, height, _ = scene.resources[-1]["image"]["dims"]
    scene.image("dst", into, size=(width, height))
    scene.dispatch("fetch", ["src", "dst"], (width, height))
    return runner.run(scene.write())["dst"]
