"""Generated bindings and tables.

Made by tools/generate_bindings.py from vulkan-object 1.4.366 (VK_HEADER_VERSION 366) and vulkan 1.3.275.1; do not edit.
The Vulkan registry is Copyright The Khronos Group Inc., Apache-2.0 OR MIT.
"""
