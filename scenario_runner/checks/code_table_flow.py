"""More of the text of `codes`, as in `code_table`: optical flows."""

# ruff: noqa: E501

from typing import Final

_FLOW: Final = "VK_ARM_data_graph_optical_flow, VkDataGraphPipelineOpticalFlowCreateInfoARM"

TABLE: Final = f"""
SR-FLOW-001 error an image of another size than the optical flow
The mip levels that are bound as search_image and template_image have `width` times `height` texels.
Correct `width` and `height`, or bind another image or `lod`.
{_FLOW}

SR-FLOW-002 error an image that does not have one texel for each vector
The mip levels that are bound as output_image, hint_motion_vectors and output_cost have one texel for each vector: `width` and `height` divided by the grid size, rounded up.
Give the image the size that the message names, or correct `grid_size`.
{_FLOW}

SR-FLOW-003 error images of an optical flow with different formats
search_image and template_image have one format, and so have output_image and hint_motion_vectors.
Give both images the same format.
{_FLOW}

SR-FLOW-004 error an optical flow that writes an image that it also uses otherwise
output_image and output_cost are written while the other images are read, so that each is a mip level of its own.
Bind another image, or another mip level.
Vulkan specification, "Synchronization and Cache Control"

SR-FLOW-005 error a descriptor type that an image of an optical flow cannot have
What an optical flow writes is a storage image; what it reads is any kind of image.
Leave `descriptor_type` out.
{_FLOW}

SR-FLOW-006 warning a flag about a previous optical flow that does not exist
The flags input_unchanged, reference_unchanged, input_is_previous_reference and reference_is_previous_input compare with the previous optical flow of the same session. The first one has none, so that the flag is ignored.
Remove the flag. Optical flows share a session if their size, grid size, performance level and formats are equal, and all or none of them have hints and costs.
VK_ARM_data_graph_optical_flow, VkDataGraphOpticalFlowExecuteFlagBitsARM

SR-FLOW-007 error an optical flow of a size that the device does not support
The width or the height is smaller or larger than the device supports.
Use images of a size that the message names, or another device.
VK_ARM_data_graph_optical_flow, VkQueueFamilyDataGraphOpticalFlowPropertiesARM
"""
