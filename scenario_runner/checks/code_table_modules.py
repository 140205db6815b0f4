"""More of the text of `codes`, as in `code_table`: rules for SPIR-V modules and models."""

# ruff: noqa: E501

from typing import Final

TABLE: Final = """
SR-SHADER-013 error the module breaks a rule of SPIR-V
The file is SPIR-V, but spirv-val, which is installed on this machine, reports that it violates a rule of SPIR-V or of the Vulkan environment for SPIR-V. Drivers do not check this: they may crash or compute wrong results.
Compile the module again with a current compiler; `spirv-val --target-env vulkan1.3 FILE` shows the same message. Set the environment variable SCENARIO_RUNNER_SPIRV_VAL to `off` to run the module without this check.
SPIR-V specification, "Universal Validation Rules"; Vulkan specification, "Vulkan Environment for SPIR-V"

SR-GRAPH-006 error a model's tables do not match its module
A VGF file describes its resources twice: in its tables and in the SPIR-V of its segments. Here the two differ in a set and binding, a shape, an element type, or a constant, so that the model cannot be run.
Convert the model again with a current converter. If your own program wrote the file, make its tables match the declarations of the module.
VGF file format, model resource table and model sequence table; SPV_ARM_graph, OpGraphEntryPointARM and OpGraphConstantARM
"""
