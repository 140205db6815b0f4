"""More of the text of `codes`, as in `code_table`: rules between the parts of a scenario, and what ends a run."""

# ruff: noqa: E501

from typing import Final

_FORMAT: Final = "JSON Test Description Specification"

TABLE: Final = f"""
SR-JSON-009 error content that a scenario file cannot hold
A scenario that was made in code has data of a type, or of a format, that neither JSON nor a file beside it can hold.
Give a NumPy array of numbers or bytes; `Scenario.save` writes them to files.
docs/python.md

SR-CONFLICT-003 error border_color and custom_border_color contradict each other
A custom border color needs a border_color of INT_CUSTOM_EXT or FLOAT_CUSTOM_EXT, and INT_CUSTOM_EXT needs a custom color of 32-bit integers.
Set both keys, or neither.
{_FORMAT}, "Image"; Vulkan specification, VkSamplerCustomBorderColorCreateInfoEXT

SR-CONFLICT-004 error the same thing is given twice
A specialization constant has two values, a shader of a model is the target of two entries, a flag is listed twice, or one input of a model is bound twice.
Keep one of the two entries.
{_FORMAT}

SR-CONFLICT-005 error two resources on one binding
Two entries of a command's bindings have the same set and the same id.
Give one of them another set or id, or remove it.
{_FORMAT}, "Bindings"

SR-CONFLICT-006 error a shader of another stage than the command needs
The command runs shaders of one stage, and the shader resource that it names says another one.
Name another shader, or correct the `stage` of the shader resource.
{_FORMAT}, "Shader"

SR-CONFLICT-007 error no such mip level
`lod` names a mip level that the image does not have. Levels count from 0.
Use a lower `lod`, or give the image more `mips`.
{_FORMAT}, "Bindings" and "Image"

SR-CONFLICT-008 error a hint for motion that is larger than the image
mean_flow_l1_norm_hint is the expected motion in texels, which is less than the larger of width and height.
Use a smaller value; 0 gives no hint.
{_FORMAT}, "Dispatch Optical Flow"

SR-CONFLICT-009 error a barrier beyond the end of its buffer
The range of a buffer barrier begins or ends after the last byte of the buffer.
Correct `offset` and `size`; without `size` the barrier goes to the end of the buffer.
Vulkan specification, VkBufferMemoryBarrier2

SR-CONFLICT-010 error a barrier beyond the mip levels or layers of its image
The subresource range of an image barrier names mip levels or array layers that the image does not have.
Correct the range; images have one array layer.
Vulkan specification, VkImageMemoryBarrier2

SR-MEMORY-001 error two initial contents for the same memory
Two resources of a memory group overlap, and both have initial content.
Give initial content to one of them, or place one at another offset.
{_FORMAT}, `memory_group`

SR-MEMORY-002 error an offset that is not aligned
The offset of a resource in its memory group is not a multiple of what its elements, or this device, need.
Use a multiple of the number that the message names.
Vulkan specification, "Resource Memory Association"

SR-MEMORY-003 error an image with mip levels in a shared memory group
Where the mip levels of an image lie is known to the device only, so that nothing can share their memory.
Use one mip level, or take the image out of the group.
Vulkan specification, "Memory Aliasing"

SR-MEMORY-004 error OPTIMAL tiling in a shared memory group
How a resource with OPTIMAL tiling is laid out is known to the device only, so that other members of the group would see undefined data.
Use the tiling LINEAR.
Vulkan specification, "Memory Aliasing"

SR-MEMORY-005 error a tensor that begins inside an image
A tensor that shares the memory of an image shows the whole image, so that both begin at the same offset.
Give both the same offset, or place the tensor after the image.
{_FORMAT}, `memory_group`

SR-MEMORY-006 error a tensor that cannot show an image
The shape or the format of the tensor does not match the texels of the image in the same memory.
Use the shape that the message names, and a format that is one component of a texel.
VK_ARM_tensors, "Tensor Aliasing"

SR-MEMORY-007 error padded rows in a shared memory group
This device pads the rows of a LINEAR image, and another resource in the same memory takes the texels as tightly packed.
Choose a width whose rows need no padding, or let a shader copy the texels.
Vulkan specification, VkSubresourceLayout

SR-MEMORY-008 error no memory type for all members of a memory group
The device has no memory type that every resource of the group can be bound to.
Take a resource out of the group, or use another device.
Vulkan specification, VkMemoryRequirements

SR-FILE-002 error the file does not match the resource
The shape, the type of the elements or the number of bytes of the file is not that of the resource.
Convert the data, or describe the resource as the file is.
{_FORMAT}, `src`

SR-FILE-003 error output files that overwrite other files
A `dst` is a file that the scenario reads, is the `dst` of another resource as well, or lies below a file.
Choose another name.
{_FORMAT}, `dst`

SR-FILE-004 error the extension is not one for this resource
The extension of a file decides its format, and this resource, or its format of texels, cannot be stored in it.
Use .npy for buffers and tensors, and .dds, .png or .npy for images.
{_FORMAT}, `dst`

SR-FILE-005 warning output files of two runs
A run was killed while it replaced the output files: some are of that run, some of the run before.
Run the scenario again.
docs/command_line.md

SR-FILE-006 error a file does not exist
Nothing has the name of a file that is to be read.
Correct the path; relative paths start from the folder of the scenario. The message names a close match where there is one.
{_FORMAT}, "Specification"

SR-SHADER-014 error build_options that are not known
An option is misspelt, lacks its argument, or a quote is not closed. Known options are -D, -U, -I, -O levels and -g.
Correct the option that the message names.
docs/shaders.md

SR-IMAGE-006 error dims that are not those of an image
Images are two-dimensional: their dims are [1, width, height, 1] with at least one texel.
Write the dims in this form.
{_FORMAT}, "Image"

SR-IMAGE-007 error too many mip levels
Each mip level has half the width and height of the one before, down to one texel.
Use at most as many levels as the message names.
Vulkan specification, "Image Mip Level Sizing"

SR-IMAGE-008 error the border color does not match the format
Border colors are either integers or floating-point numbers, as the texels of the format are.
Use the border color that the help names.
Vulkan specification, VkBorderColor

SR-IMAGE-009 error a transition to the layout undefined
No image can be moved to the layout undefined; it is only where an image comes from.
Use `general`, or the layout that the next command needs.
Vulkan specification, VkImageMemoryBarrier2, newLayout

SR-IMAGE-010 warning the image is in another layout than the barrier expects
`old_layout` is not the layout that the mip level is in at this command. The real one is used.
Write the layout that the message names.
Vulkan specification, VkImageMemoryBarrier2, oldLayout

SR-IMAGE-011 error shaders cannot use the image in this layout
A barrier has moved the mip level to a layout in which this command's shaders cannot use it.
Move it to `general` before the command.
Vulkan specification, "Image Layouts"

SR-IMAGE-012 warning integers are not interpolated
A sampler with the filter LINEAR reads an image whose texels are integers. NEAREST is used.
Set the filters to NEAREST.
Vulkan specification, "Texel Filtering"

SR-ATTACH-009 error a drawing without a size
A drawing has the size of its color attachments, or of render_extent where it has none.
Add color_attachment_refs or render_extent.
{_FORMAT}, "Dispatch Fragment"

SR-TENSOR-004 error a format that tensors cannot have
The elements of tensors are single numbers, so that their format has one component.
Use a format with one component, such as VK_FORMAT_R32_SFLOAT.
VK_ARM_tensors, VkTensorDescriptionARM

SR-TENSOR-005 error the tensor is too large
The shape has more dimensions, or more elements, than any device takes.
Use a smaller shape.
VK_ARM_tensors, VkPhysicalDeviceTensorPropertiesARM

SR-TENSOR-006 error the shape of the tensor is unknown
Dimensions of 0 or less are taken from the graph that the tensor is bound to, and no graph says what they are.
Write the shape, or bind the tensor to a graph whose shapes are fixed or follow from its inputs.
{_FORMAT}, "Tensor"

SR-GRAPH-007 error a shape that does not follow from the inputs
The model leaves the shape of a value open, and the shapes of its inputs do not determine it.
Convert the model with fixed shapes.
SPV_ARM_graph; TOSA specification

SR-GRAPH-008 error the model has no such shader
An entry names a shader of a model that the model does not have.
Use one of the names that the message lists.
{_FORMAT}, "Graph"

SR-GRAPH-009 error a shader of the model has no code
The model has a placeholder for a shader, which the scenario must substitute.
Add an entry to shader_substitutions.
{_FORMAT}, `shader_substitutions`

SR-GRAPH-010 error one value of the model is bound to two resources
Two inputs or outputs of the model are the same value in memory, so that one resource stands for both.
Bind the resource that the message names at both places.
VGF file format, model resource table

SR-GRAPH-011 error the shader is not of the type SPIR-V
dispatch_spirv_graph runs a graph of a SPIR-V module, which no other language can describe.
Name a shader resource of the type SPIR-V.
{_FORMAT}, "Dispatch SPIR-V Graph"

SR-GRAPH-012 error the inputs do not match each other
The shapes of the graph's inputs are right alone, and an operator of the graph cannot take them together.
Give the inputs the shapes that the model is made for.
TOSA specification

SR-GRAPH-013 error a buffer or image that does not match the model
The size or the format of the resource is not that of the model's input or output.
Use the size and format that the message names.
VGF file format, model resource table

SR-PUSH-005 error push constant data for a shader without push constants
The command has push_data_ref, and push_constants_size of its shaders is 0.
Set push_constants_size of the shader to the size of the data, or remove push_data_ref.
{_FORMAT}, `push_constants_size`

SR-LIMIT-011 error a tensor too large for the device
A tensor has more dimensions, elements or bytes than a limit of VkPhysicalDeviceTensorPropertiesARM.
Use a smaller tensor, or another device.
VK_ARM_tensors, VkPhysicalDeviceTensorPropertiesARM

SR-FEATURE-003 error the device lacks the format
The device has no images, or no tensors, of this format with the tiling and for the uses that the scenario needs.
Use another format or tiling, or another device; `scenario-runner doctor` lists what a device has.
Vulkan specification, "Format Features"

SR-USAGE-001 error the command line or the call cannot be understood
An option or argument has a value that it cannot have, or an array that was given in code does not match its resource.
Do what the message says; `scenario-runner COMMAND --help` lists the options.
docs/command_line.md; docs/python.md

SR-DEVICE-001 error the Vulkan driver failed
A Vulkan call returned an error. The message names the call and its result.
Look at the driver's version and at the log of the system.
Vulkan specification, "Return Codes"

SR-DEVICE-002 error no device
There is no Vulkan loader, no driver, or no device like the one asked for.
Run `scenario-runner doctor`, which says what is missing.
docs/command_line.md

SR-DEVICE-003 error out of memory
The device or the host cannot give the memory that was asked for.
Use smaller resources, or close other programs.
Vulkan specification, VK_ERROR_OUT_OF_DEVICE_MEMORY

SR-DEVICE-004 error the work did not finish in time
The submitted work took longer than the time that a run may take.
Raise --timeout, or look for a loop in the shaders that does not end.
Vulkan specification, vkWaitForFences

SR-DEVICE-005 error the device was lost
The driver reports VK_ERROR_DEVICE_LOST: the work took too long for it, or accessed memory that it must not.
Look for accesses beyond the end of a resource, and for loops that do not end.
Vulkan specification, "Lost Device"

SR-DEVICE-006 error the driver crashed
A signal such as SIGSEGV ended the process while the driver was at work.
Run `scenario-runner validate`, update the driver, or use another device.
docs/command_line.md

SR-DEVICE-007 error the validation layer reported errors
Vulkan was used in a way that it does not allow, by the scenario or by this program.
Read the layer's message. --validation-report lets the run succeed.
docs/command_line.md

SR-DEVICE-008 error a limit of the system
The system refuses this process another thread or process.
Raise the limit that the message names.
docs/command_line.md

SR-DEVICE-009 error a pipeline did not come from the pipeline cache
--fail-on-pipeline-cache-miss was given, a pipeline cache was loaded, and the driver made a pipeline anew.
Run once without --fail-on-pipeline-cache-miss, so that the cache gets the pipeline. Some drivers keep no pipelines.
docs/caches.md

SR-RUN-003 error beyond what this program knows
A file has a format or a kind of value that this version of the program does not know.
Convert the file, or update the program.
README.md

SR-RUN-004 note more problems than are shown
One report shows the first hundred problems of a file.
Fix those that are shown, and run `scenario-runner validate` again.
docs/command_line.md
"""
