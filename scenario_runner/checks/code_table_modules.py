"""More of the text of `codes`, as in `code_table`: what SPIR-V modules and models break."""

# ruff: noqa: E501

from typing import Final

TABLE: Final = """
SR-SHADER-013 error the module breaks a rule of SPIR-V
The file can be read as SPIR-V, and spirv-val, which is installed here, finds that it breaks a rule of SPIR-V or of Vulkan's environment for it. Drivers do not check this: they crash on such modules, or compute anything.
Make the module again with a current compiler; `spirv-val --target-env vulkan1.3 FILE` shows the same message. Set the environment variable SCENARIO_RUNNER_SPIRV_VAL to `off` to run the module all the same.
SPIR-V specification, "Universal Validation Rules"; Vulkan specification, "Vulkan Environment for SPIR-V"

SR-GRAPH-006 error a model's tables do not match its module
A VGF file describes its resources twice: in its tables and in the SPIR-V of its segments. Here the two disagree about a set and binding, a shape, the type of the elements, or a constant, so that no scenario can run the model.
Convert the model again with a current converter. If it was written by a program of your own, make the tables say what the module declares.
VGF file format, model resource table and model sequence table; SPV_ARM_graph, OpGraphEntryPointARM and OpGraphConstantARM
"""
