"""More of the text of `codes`, as in `code_table`: custom operations of TOSA models that are shaders."""

# ruff: noqa: E501

from typing import Final

_ATTRIBUTES: Final = "Vulkan Shader in TOSA Custom Operation Attributes"

TABLE: Final = f"""
SR-CUSTOM-001 error attributes contradict each other
Two attributes of a custom operation cannot both be meant, such as shader_code without a shader_language, a tensor in a format of four components, or a sampled image as a result.
Change or remove one of the two.
{_ATTRIBUTES}

SR-CUSTOM-002 error the index of an input or output is not counted from 0
Inputs and outputs are numbered 0, 1, 2, and so on, without leading zeros. An index has a leading zero, or the one before it is missing.
Number them without gaps, in the order of the operands and of the results.
{_ATTRIBUTES}, "Input / Output Resource Attributes"

SR-CUSTOM-003 error attributes for another number of operands or results
The attributes describe an input or output that the operation does not have, or none for one that it has.
Describe every operand as input_0, input_1, ... and every result as output_0, output_1, ...
{_ATTRIBUTES}; Vulkan Custom Shader Conversion to VGF

SR-CUSTOM-004 error two resources at one binding
Two inputs or outputs have the same descriptor set and binding. A descriptor holds one resource.
Give each its own binding, and declare it in the shader.
Vulkan specification, "DescriptorSet and Binding Assignment"

SR-CUSTOM-005 error shader_code is not SPIR-V in base64
With the language SPIR-V, shader_code is the base64 form of a module: whole 32-bit words that begin with SPIR-V's magic number, in little-endian order.
Encode the bytes of the .spv file again, for example with Python's base64.b64encode.
{_ATTRIBUTES}, "shader_code"

SR-CUSTOM-006 error push_constants cannot be read
push_constants is a list such as "scale: 4, bias: 4": names, each with its size in bytes, separated by commas.
Write it in this form; each size is at least 1, each name occurs once.
{_ATTRIBUTES}, "push_constants"

SR-CUSTOM-007 warning an unknown attribute that is close to a known one
Attributes that are not known are allowed and have no effect. This one looks like a misspelling.
Correct the spelling, or rename it.
{_ATTRIBUTES}

SR-CUSTOM-008 warning another name for the entry point of GLSL
The entry point of a GLSL shader is its function main. Programs that compile the text for Vulkan find no other name.
Write "entry_point": "main".
OpenGL Shading Language specification, "Function Definitions"
"""
