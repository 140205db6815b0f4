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

SR-CUSTOM-009 error the shader uses a binding that the attributes do not have
The shader uses a variable at a set and binding that no input or output of the attributes has. Its descriptor would hold nothing.
Correct the binding and descriptorset of the input or output that is meant, or the numbers in the shader.
{_ATTRIBUTES}; Vulkan specification, "Shader Interfaces"

SR-CUSTOM-010 warning an input or output that the shader does not use
The attributes have an input or output at a set and binding that the shader does not use.
Correct the numbers, or use the variable in the shader.
{_ATTRIBUTES}; Vulkan specification, "Shader Interfaces"

SR-CUSTOM-011 error the descriptor type is not that of the shader's variable
The shader declares another kind of variable at this set and binding than the attributes say, such as a uniform buffer for VK_DESCRIPTOR_TYPE_STORAGE_BUFFER.
Write the descriptor type that the help names, or change the declaration.
Vulkan specification, "Shader Resource and Descriptor Type Correspondence"

SR-CUSTOM-012 warning the format is not that of the shader's variable
The elements that the shader declares are not what the format of the input or output says.
Change the format or the declaration, so that both are the same type.
{_ATTRIBUTES}

SR-CUSTOM-013 warning the shader does not read or write as inputs and outputs do
A shader writes one of its inputs, or never writes one of its outputs. Other operations that use the same operand may see what was written, and the content of the output is undefined.
Exchange the input and the output if they are swapped, or write the result in the shader.
Vulkan Custom Shader Conversion to VGF

SR-CUSTOM-014 warning workgroup_sizes may not mean what was meant
The description of the attributes calls workgroup_sizes the local size of the shader. Converters write it as the number of workgroups of the dispatch, and that is how models run.
Write the number of workgroups, or convert with `--dispatch cover-output`, which computes it from the output and the local size.
{_ATTRIBUTES}, "workgroup_sizes"; docs/custom_shaders.md

SR-CUSTOM-015 error push_constants do not agree with the shader
The names, sizes or order of push_constants are not those of the shader's push constant block.
Write what the help shows, or change the block in the shader.
{_ATTRIBUTES}, "push_constants"

SR-CUSTOM-016 error an operand or result that the attributes cannot show to the shader
The element type or the shape of an operand or result of the operation does not fit the format, or cannot be an image: images have the shape [height, width, components] or [1, height, width, components].
Change the format, the descriptor type, or the type of the value in the model.
Vulkan Custom Shader Conversion to VGF

SR-CUSTOM-017 warning push constants that only one side has
The shader has push constants and the attributes have no push_constants, or the other way round.
Add what is missing, or remove what is not used.
{_ATTRIBUTES}, "push_constants"

SR-CUSTOM-018 error the embedded source includes other files
The shader_code has an #include. A model carries no other files, and where it runs others may have the same names.
Put the included text in its place, or embed the compiled module: `scenario-runner custom-op attributes --spirv` does.
{_ATTRIBUTES}, "shader_code"
"""
