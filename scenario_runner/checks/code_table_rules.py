"""More of the text of `codes`, as in `code_table`: rules between the parts of a scenario, and what ends a run."""

# ruff: noqa: E501

from typing import Final

_FORMAT: Final = "JSON Test Description Specification"

TABLE: Final = f"""
SR-JSON-009 error content that cannot be saved
A scenario that was built in code has data that cannot be written as JSON, or to a file beside it.
Use a NumPy array of numbers, or bytes; `Scenario.save` writes them to files.
docs/python.md

SR-CONFLICT-003 error border_color and custom_border_color contradict each other
A custom border color requires a border_color of INT_CUSTOM_EXT or FLOAT_CUSTOM_EXT, and INT_CUSTOM_EXT requires a custom color of 32-bit integers.
Set both keys, or neither.
{_FORMAT}, "Image"; Vulkan specification, VkSamplerCustomBorderColorCreateInfoEXT

SR-CONFLICT-004 error duplicate entry
A specialization constant has two values, a shader of a model is the target of two entries, a flag is listed twice, or one input of a model is bound twice.
Keep one of the two entries.
{_FORMAT}

SR-CONFLICT-005 error duplicate binding
Two entries of a command's bindings have the same set and the same id.
Give one of them another set or id, or remove it.
{_FORMAT}, "Bindings"

SR-CONFLICT-006 error the shader has the wrong stage
The command requires a shader of one stage, and the shader resource declares another one.
Refer to another shader, or correct the `stage` of the shader resource.
{_FORMAT}, "Shader"

SR-CONFLICT-007 error unknown mip level
`lod` is a mip level that the image does not have. The first level is 0.
Use a lower `lod`, or increase `mips` of the image.
{_FORMAT}, "Bindings" and "Image"

SR-CONFLICT-008 error the motion hint is larger than the image
mean_flow_l1_norm_hint is the expected motion in texels, which must be less than the larger of width and height.
Use a smaller value; 0 gives no hint.
{_FORMAT}, "Dispatch Optical Flow"

SR-CONFLICT-009 error a barrier beyond the end of its buffer
The range of a buffer barrier begins or ends after the last byte of the buffer.
Correct `offset` and `size`; a `size` of 18446744073709551615 means all bytes from `offset` on.
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
The offset of a resource in its memory group is not a multiple of the alignment of its elements or of this device.
Use a multiple of the alignment that the message names.
Vulkan specification, "Resource Memory Association"

SR-MEMORY-003 error an image with mip levels in a shared memory group
The memory layout of mip levels is known only to the device, so that other resources cannot share it.
Use one mip level, or remove the image from the group.
Vulkan specification, "Memory Aliasing"

SR-MEMORY-004 error OPTIMAL tiling in a shared memory group
The memory layout of a resource with OPTIMAL tiling is known only to the device, so that other members of the group would read undefined data. Only identical images, or one image and tensors that show it, can share memory with OPTIMAL tiling.
Use the tiling LINEAR.
Vulkan specification, "Memory Aliasing"

SR-MEMORY-006 error a tensor that does not match the image in its memory
The shape or the format of the tensor does not match the texels of an OPTIMAL image in the same memory, or the image has depths and stencils, which only the device can find.
Use the shape that the message names, and a format that is one component of a texel; or LINEAR tiling.
VK_ARM_tensors, "Tensor Aliasing"

SR-MEMORY-007 error padded rows in a shared memory group
This device pads the rows of a LINEAR image, and another resource in the same memory has tightly packed texels.
Choose a width whose rows are not padded, or copy the texels in a shader.
Vulkan specification, VkSubresourceLayout

SR-MEMORY-008 error no memory type for all members of a memory group
The device does not have a memory type that all resources of the group can use.
Remove a resource from the group, or use another device.
Vulkan specification, VkMemoryRequirements

SR-MEMORY-009 error members of a memory group with different tilings
An image and a tensor share memory, and one of them has OPTIMAL tiling, the other LINEAR. A shared image without `tiling` is LINEAR, and so is a tensor.
Give both the same tiling.
VK_ARM_tensors, "Tensor Aliasing"

SR-MEMORY-010 error an image and a tensor of OPTIMAL tiling that one command uses at once
The image and the tensor share memory. The image is in the layout tensor_aliasing while the tensor is used, and in general while the image is used.
Use one of them in the command, or give both the tiling LINEAR.
VK_ARM_tensors, "Tensor Aliasing"

SR-FILE-002 error the file does not match the resource
The shape, the type of the elements or the number of bytes of the file is not that of the resource.
Convert the data, or change the resource to match the file.
{_FORMAT}, `src`

SR-FILE-003 error output files that overwrite other files
A `dst` is a file that the scenario reads, is also the `dst` of another resource, or has a file as one of its folders.
Choose another name.
{_FORMAT}, `dst`

SR-FILE-004 error the file extension is not supported for this resource
The extension of a file selects its format, and this format cannot hold the resource or its texel format.
Use .npy for buffers and tensors, and .dds, .png or .npy for images.
{_FORMAT}, `dst`

SR-FILE-005 warning output files of two runs
A run was killed while it replaced the output files: some files are from that run, others from the run before.
Run the scenario again.
docs/command_line.md

SR-FILE-006 error a file does not exist
A file that is to be read does not exist.
Correct the path; relative paths start from the folder of the scenario. The message suggests a similar name if there is one.
{_FORMAT}, "Specification"

SR-FILE-007 error a damaged .npy file
The file does not begin as a .npy file does, its header cannot be read, or it has fewer or more bytes than its header says.
Write the file again, for example with `numpy.save`.
NumPy documentation, "NPY format"

SR-FILE-008 error a .npy file that this program does not read
The version of the file, or the type of its items (Python objects, records, strings), is not supported.
Save an array of numbers, Booleans or raw bytes.
NumPy documentation, "NPY format"

SR-FILE-009 error a damaged .dds file
The file does not begin as a .dds file does, its header contradicts itself, or it has fewer or more bytes than its header says.
Write the file again.
Microsoft, "Programming Guide for DDS"

SR-FILE-010 error a .dds file that this program does not read
The file has a cube map, a volume, an array of images, or a format of texels that Vulkan does not have.
Convert it to one two-dimensional image of a common format.
Microsoft, "Programming Guide for DDS"

SR-FILE-011 error a damaged PNG file
The file does not begin as a PNG file does, a check sum is wrong, its header has values that PNG does not allow, or its texels cannot be decoded.
Write the file again.
PNG specification (W3C)

SR-FILE-012 error a PNG file that this program does not read
The file has a critical chunk of an unknown kind, too many chunks, or too many texels.
Save it with another program, or as .npy.
PNG specification (W3C), "Chunk naming conventions"

SR-FILE-013 error a damaged VGF file
The file does not begin as a VGF file does, a section reaches beyond its end, or its tables contradict each other.
Convert the model again; `scenario-runner vgf check FILE` lists everything that is wrong with the file.
VGF file format

SR-FILE-014 error a VGF file that this program does not read
The file has another version of the VGF format, or a table has a value that the format does not define.
Convert the model again with a model converter that writes a supported version.
VGF file format

SR-FILE-015 error a file cannot be written
An output file cannot be created or written: its folder does not exist or is read-only, there is no space, or something that is not a file has its name.
Correct `dst` or the folder that is given with --output; make space.
{_FORMAT}, `dst`

SR-SHADER-015 error a SPIR-V version that this program does not read
The module has a version of SPIR-V other than 1.0 to 1.6.
Compile the shader for a Vulkan version up to 1.4.
SPIR-V specification, "Physical Layout of a SPIR-V Module and Instruction"

SR-GRAPH-014 error a graph that breaks a rule of SPIR-V or TOSA
An instruction of the module's graph refers to something that is not there, or has operands, types or shapes that the operator does not take.
Convert the model again with a current converter.
SPV_ARM_graph, SPV_ARM_tensors; TOSA specification

SR-SHADER-014 error invalid build_options
An option is unknown or lacks its argument, or a quote is not closed. The options are -D, -U, -I, -O levels and -g.
Correct the option that the message names.
docs/shaders.md

SR-IMAGE-006 error invalid dims of an image
Images are two-dimensional: their dims are [1, width, height, 1] with at least one texel.
Use dims of this form.
{_FORMAT}, "Image"

SR-IMAGE-007 error too many mip levels
Each mip level has half the width and height of the one before, down to one texel.
Use at most the number of levels that the message names.
Vulkan specification, "Image Mip Level Sizing"

SR-IMAGE-008 error the border color does not match the format
Border colors are either integers or floating-point numbers, and must match the format.
Use the border color that the help of the message names.
Vulkan specification, VkBorderColor

SR-IMAGE-009 error a transition to the layout undefined
An image cannot be moved to the layout undefined; it can only be an old layout.
Use `general`, or the layout that the next command requires.
Vulkan specification, VkImageMemoryBarrier2, newLayout

SR-IMAGE-010 warning the image is in another layout than the barrier expects
`old_layout` is not the layout of the mip level at this command. The actual layout is used.
Use the layout that the message names.
Vulkan specification, VkImageMemoryBarrier2, oldLayout

SR-IMAGE-011 error shaders cannot use the image in this layout
A barrier has moved the mip level to a layout in which shaders cannot use it.
Move it to `general` before the command.
Vulkan specification, "Image Layouts"

SR-IMAGE-012 warning LINEAR filter on integers
A sampler with the filter LINEAR reads an image whose texels are integers, which cannot be interpolated. NEAREST is used.
Set the filters to NEAREST.
Vulkan specification, "Texel Filtering"

SR-ATTACH-009 error a drawing without a size
The size of a drawing is that of its color attachments, or render_extent if there are none.
Add color_attachment_refs or render_extent.
{_FORMAT}, "Dispatch Fragment"

SR-TENSOR-004 error invalid format of a tensor
The elements of tensors are single numbers, so that their format must have one component.
Use a format with one component, such as VK_FORMAT_R32_SFLOAT.
VK_ARM_tensors, VkTensorDescriptionARM

SR-TENSOR-005 error the tensor is too large
The shape has more dimensions, or more elements, than any device supports.
Use a smaller shape.
VK_ARM_tensors, VkPhysicalDeviceTensorPropertiesARM

SR-TENSOR-006 error the shape of the tensor is unknown
Dimensions of 0 or less are taken from the graph that the tensor is bound to, and no graph determines them.
Set the shape, or bind the tensor to a graph whose shapes are fixed or follow from its inputs.
{_FORMAT}, "Tensor"

SR-GRAPH-007 error a shape that does not follow from the inputs
The shape of a value of the model is not fixed, and the shapes of the inputs do not determine it.
Convert the model with fixed shapes.
SPV_ARM_graph; TOSA specification

SR-GRAPH-008 error unknown shader of a model
An entry names a shader that the model does not have.
Use one of the names that the message lists.
{_FORMAT}, "Graph"

SR-GRAPH-009 error a shader of the model without code
The model has a placeholder for a shader, for which the scenario must provide a substitute.
Add an entry to shader_substitutions.
{_FORMAT}, `shader_substitutions`

SR-GRAPH-010 error one value of the model is bound to two resources
An input and an output of the model are the same value in memory, so that one resource must be bound to both.
Bind the resource that the message names to both.
VGF file format, model resource table

SR-GRAPH-011 error the shader is not of the type SPIR-V
dispatch_spirv_graph runs a graph of a SPIR-V module, which other shader languages cannot describe.
Refer to a shader resource of the type SPIR-V.
{_FORMAT}, "Dispatch SPIR-V Graph"

SR-GRAPH-012 error the inputs do not match each other
Each input has a valid shape, but an operator of the graph does not accept this combination of shapes.
Use inputs of the shapes that the model is designed for.
TOSA specification

SR-GRAPH-013 error a buffer or image that does not match the model
The size or the format of the resource is not that of the model's input or output.
Use the size and format that the message names.
VGF file format, model resource table

SR-PUSH-005 error push constant data for a shader without push constants
The command has push_data_ref, and its shaders declare no push constants.
Remove push_data_ref.
{_FORMAT}, `push_constants_size`

SR-LIMIT-011 error a tensor too large for the device
A tensor has more dimensions, elements or bytes than a limit of VkPhysicalDeviceTensorPropertiesARM.
Use a smaller tensor, or another device.
VK_ARM_tensors, VkPhysicalDeviceTensorPropertiesARM

SR-FEATURE-003 error the device lacks the format
The device does not support images or tensors of this format with the required tiling and usage.
Use another format or tiling, or another device; `scenario-runner doctor` lists the formats of a device.
Vulkan specification, "Format Features"

SR-FEATURE-004 error the device has no graphics
A dispatch_fragment needs a queue family that supports graphics and compute, and the device has none.
Use another device: `scenario-runner --list-devices` lists them.
Vulkan specification, "Queues", VK_QUEUE_GRAPHICS_BIT

SR-USAGE-001 error invalid command line or call
An option or argument has an invalid value, or an array that was passed in code does not match its resource.
Correct the argument that the message names; `scenario-runner COMMAND --help` lists the options.
docs/command_line.md; docs/python.md

SR-DEVICE-001 error a Vulkan call failed
A Vulkan call returned an error. The message names the call and its result.
Check the version of the driver and the system log.
Vulkan specification, "Return Codes"

SR-DEVICE-002 error no device
There is no Vulkan loader, no driver, or no device like the one asked for.
Run `scenario-runner doctor`, which says what is missing.
docs/command_line.md

SR-DEVICE-003 error out of memory
The device or the host cannot allocate the requested memory.
Use smaller resources, or close other programs.
Vulkan specification, VK_ERROR_OUT_OF_DEVICE_MEMORY

SR-DEVICE-004 error timeout
The submitted work did not finish within the time limit of the run.
Increase --timeout, or look for an endless loop in the shaders.
Vulkan specification, vkWaitForFences

SR-DEVICE-005 error the device was lost
The driver reports VK_ERROR_DEVICE_LOST: the work took too long, or made an invalid memory access.
Look for accesses beyond the end of a resource, and for endless loops.
Vulkan specification, "Lost Device"

SR-DEVICE-006 error the driver crashed
A signal such as SIGSEGV ended the process while it was using the driver.
Run `scenario-runner validate`, update the driver, or use another device.
docs/command_line.md

SR-DEVICE-007 error the validation layer reported errors
The scenario or this program broke a rule of Vulkan.
Read the message of the layer. With --validation-report such errors do not fail the run.
docs/command_line.md

SR-DEVICE-008 error system limit reached
The system does not allow this process to start another thread or process.
Increase the limit that the message names.
docs/command_line.md

SR-DEVICE-009 error a pipeline did not come from the pipeline cache
--fail-on-pipeline-cache-miss was given, a pipeline cache was loaded, and the driver made a pipeline anew.
Run once without --fail-on-pipeline-cache-miss, so that the cache gets the pipeline. Some drivers keep no pipelines.
docs/caches.md

SR-RUN-003 error unknown format or kind of value
A file has a format or a kind of value that this version of the program does not support.
Convert the file, or update the program.
README.md

SR-RUN-004 note more problems than shown
A report shows only the first hundred problems of a file.
Fix the problems that are shown, and run `scenario-runner validate` again.
docs/command_line.md
"""
