"""The codes of missing barriers, in the form of `code_table`."""

# Lines may be as long as their sentences: this is prose, wrapped by whoever prints it.
# ruff: noqa: E501

from typing import Final

TABLE: Final = """
SR-HAZARD-001 warning read after write without a barrier
A command reads memory that an earlier command writes, and nothing between them makes the write visible: it may see old, new or mixed values.
Leave implicit_barrier of the first command on, or insert a dispatch_barrier between the two whose stages and accesses cover both. Atomics of both on the same memory need none.
Vulkan specification, "Execution and Memory Dependencies"

SR-HAZARD-002 warning write after read without a barrier
A command writes memory that an earlier command may still be reading.
Leave implicit_barrier of the first command on, or insert a dispatch_barrier between the two; it needs to name the stages only.
Vulkan specification, "Execution and Memory Dependencies"

SR-HAZARD-003 warning write after write without a barrier
Two commands write the same memory and nothing orders them: which value stays is not defined.
Leave implicit_barrier of the first command on, or insert a dispatch_barrier between the two.
Vulkan specification, "Execution and Memory Dependencies"

SR-HAZARD-004 warning a barrier is there and does not cover it
Between the two commands there is a barrier, but its stages, accesses or range leave this dependency out.
Name the stage and access of the first command as source and those of the second one as destination; the stage `all` with memory_write and memory_read covers every case.
Vulkan specification, "Execution and Memory Dependencies"

SR-HAZARD-005 warning a barrier covers a part of the memory only
Between the two commands there is a barrier whose range (bytes of a buffer, mip levels of an image) leaves out memory that both use. Which bytes a shader touches is not known beyond the size of its block, so where the shaders keep to the covered part all is well.
Widen the range of the barrier, or use a memory_barrier, which covers all memory.
Vulkan specification, "Synchronization and Cache Control", "Buffer Memory Barriers" and "Image Memory Barriers"

SR-HAZARD-006 warning a layout transition that nothing orders
A change of an image's layout reads and writes the image between the source and the destination of its barrier. Here a command before it is not covered by src_stage and src_access, or one behind it not by dst_stage and dst_access, so that both may happen at once.
Let the image barrier name the stage and access of the command before as source, and those of the command behind as destination.
Vulkan specification, "Synchronization and Cache Control", "Image Layout Transitions"
"""
