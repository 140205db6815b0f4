"""More of the text of `codes`, as in `code_table`: converting TOSA models to VGF."""

# ruff: noqa: E501

from typing import Final

_CONVERSION: Final = "Vulkan Custom Shader Conversion to VGF"

TABLE: Final = f"""
SR-CUSTOM-030 error the file is not a valid TOSA model
It is neither MLIR text, MLIR bytecode nor a TOSA FlatBuffer, or it breaks a rule of MLIR or TOSA: a syntax error, a type that does not fit, a value that is used before it is made (also where operations form a cycle).
Correct the model at the line of the message, or export it again.
MLIR language reference; TOSA 1.0 specification

SR-CUSTOM-031 error the converter is not installed
Machine-learning operations are lowered by Arm's model-converter, and MLIR bytecode and TOSA FlatBuffers are read by it. It was not found, or cannot be started. A model of MLIR text that has shaders only is converted without it.
Install the package ai_ml_sdk_model_converter, or set SCENARIO_RUNNER_MODEL_CONVERTER to the path of the program.
ML SDK for Vulkan, model converter

SR-CUSTOM-032 error the converter cannot lower the model
The model is valid, but model-converter has no SPIR-V for one of its operations: a TOSA operation with an element type that it does not know, or a custom operation of another domain.
Change the operation that the message names, or give the converter what it needs with --converter-option.
TOSA extended instruction set for SPIR-V; {_CONVERSION}

SR-CUSTOM-033 error the converter failed
model-converter was ended by a signal, or ended without a result and without a reason.
Report the model to the authors of model-converter. Converting its parts apart shows which one is at fault.
ML SDK for Vulkan, model converter

SR-CUSTOM-034 error an operand or result that a shader cannot have
The type of an operand or result of a shader has dimensions that are not known, or elements that no Vulkan format holds; or the shader has no result. Resources of a shader are allocated before it runs, so their sizes must be known.
Give the model static shapes, and the shader tensors of TOSA types.
{_CONVERSION}; VkFormat

SR-CUSTOM-035 warning a custom operation of another domain
The domain_name of a custom operation is not com.arm.VulkanCustomShader, so it is no shader. It is left to the converter, which refuses operations that it does not know.
Write the domain_name exactly like this if a shader is meant.
{_CONVERSION}, "Domain Name"

SR-CUSTOM-036 error views of one value do not fit together
Two segments see one value, but as resources of different sizes, or as an image whose shape is not that of an image: the format or descriptor type in the attributes of a shader does not fit the type of its operand or result.
Correct the vkformat or vkdescriptortype of the input or output. Images have the shape [H, W, C] or [1, H, W, C], where C is the number of components of the format.
{_CONVERSION}; VGF file format, alias groups

SR-CUSTOM-037 note functions that are not converted
The model has several functions. A VGF file holds one.
Choose another function with --function, and convert each one into a file of its own.
VGF file format, model sequence table

SR-CUSTOM-038 error what no segment can do
The function calls another function, or a shader stands inside a region of another operation (such as a branch of cond_if). Segments of a VGF file run one after the other, each once.
Put the operations of the called function in place of the call, and move shaders out of regions.
{_CONVERSION}, "Model Partitioning"
"""
