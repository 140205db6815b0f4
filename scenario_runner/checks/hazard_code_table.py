"""The codes of missing barriers, in the form of `code_table`."""

# Lines may be as long as their sentences: this is prose, wrapped by whoever prints it.
# ruff: noqa: E501

from typing import Final

TABLE: Final = """
SR-HAZARD-001 warning read after write without a barrier
A command reads memory that an earlier command writes, and no barrier between them makes the write visible: the values may be old, new or mixed.
Set implicit_barrier of the first command to true (the default), or insert a dispatch_barrier between the two whose stages and accesses cover both. Two atomic accesses to the same memory do not need a barrier.
Vulkan specification, "Execution and Memory Dependencies"

SR-HAZARD-002 warning write after read without a barrier
A command writes memory that an earlier command may still be reading.
Set implicit_barrier of the first command to true (the default), or insert a dispatch_barrier between the two; only its stages matter.
Vulkan specification, "Execution and Memory Dependencies"

SR-HAZARD-003 warning write after write without a barrier
Two commands write the same memory and no barrier orders them: the final value is undefined.
Set implicit_barrier of the first command to true (the default), or insert a dispatch_barrier between the two.
Vulkan specification, "Execution and Memory Dependencies"

SR-HAZARD-004 warning a barrier does not cover the dependency
There is a barrier between the two commands, but its stages, accesses or range do not include this dependency.
Set the source to the stage and access of the first command, and the destination to those of the second; the stage `all` with memory_write and memory_read covers every case.
Vulkan specification, "Execution and Memory Dependencies"

SR-HAZARD-005 warning a barrier covers only a part of the memory
There is a barrier between the two commands whose range (bytes of a buffer, mip levels of an image) does not include all memory that both use. The bytes that a shader accesses are not known beyond the size of its block; if both shaders access only the covered part, the barrier is sufficient.
Extend the range of the barrier, or use a memory_barrier, which covers all memory.
Vulkan specification, "Synchronization and Cache Control", "Buffer Memory Barriers" and "Image Memory Barriers"

SR-HAZARD-006 warning a layout transition without order
A layout transition reads and writes the image between the source and the destination of its barrier. Here src_stage and src_access do not include an earlier command, or dst_stage and dst_access a later one, so that both may run at the same time as the transition.
Set the source of the image barrier to the stage and access of the earlier command, and the destination to those of the later one.
Vulkan specification, "Synchronization and Cache Control", "Image Layout Transitions"
"""
