"""The text of `codes`: of each code a line with its severity and title, its meaning, how to fix it, and its source."""

# Each paragraph is four lines. Lines may be as long as their sentences: this is prose, wrapped by whoever prints it.
# ruff: noqa: E501

from typing import Final

_INTERFACES: Final = 'Vulkan specification, "Shader Interfaces"'

TABLE: Final = f"""
SR-JSON-001 error the text is not JSON
The file has a syntax error: an extra or missing comma, an unclosed string, a comment, or an invalid number. The text after the error cannot be read.
Correct the text at the line and column of the message, or shortly before.
JSON (RFC 8259); JSON Test Description Specification, "Specification"

SR-JSON-002 error a key appears twice
An object has the same key twice. JSON does not define which value is used.
Remove one of the two.
JSON (RFC 8259), section 4

SR-JSON-003 error unknown key
An object has a key that is like one of its own, but is none of them, or it lacks a required key. Other unknown keys are SR-JSON-010.
Correct the spelling (the message suggests a similar key if there is one), or remove the key.
JSON Test Description Specification

SR-JSON-004 error a required key is missing
An object does not have a key that its kind requires.
Add the key; `scenario-runner schema` prints the keys of each kind.
JSON Test Description Specification

SR-JSON-005 error invalid value
A value has the wrong type, is out of range, or is not one of the allowed names.
Use a value that the message lists as expected.
JSON Test Description Specification

SR-JSON-006 error unknown kind of resource or command
An entry of `resources` or `commands` is an object with one key, its kind; this kind does not exist, or belongs to the other list.
Use one of the kinds that the help lists.
JSON Test Description Specification, "Resources" and "Commands"

SR-JSON-007 error the file is not UTF-8 or is too large
The file is not encoded as UTF-8, or is larger than a scenario can be.
Save it as UTF-8; keep data in the .npy files that the scenario names.
JSON (RFC 8259), section 8.1

SR-JSON-008 warning deprecated value
The value is accepted with the meaning that it has in other programs, such as 16.0 for an integer.
Replace it as the help of the message says.
JSON Test Description Specification

SR-JSON-010 warning a key without effect
The object does not have this key, nor one that is like it. Other programs pass over such keys, and files written for them hold them.
Remove it. The help names the kinds that have it.
JSON Test Description Specification

SR-REF-001 error no resource has this uid
A command or resource refers to a uid that is not defined.
Correct the spelling, or add the resource. The message suggests a similar uid if there is one.
JSON Test Description Specification, "Resources"

SR-REF-002 error reference to a resource of the wrong kind
The uid is defined, but its resource is of a kind that cannot be used here, such as a buffer where a shader is required.
Refer to a resource of the kind that the message expects.
JSON Test Description Specification

SR-REF-003 error duplicate uid
Two resources have the same uid. A uid is unique among all resources, whatever their kind.
Rename one of them.
JSON Test Description Specification, "Resources"

SR-CONFLICT-002 warning a setting without effect
The setting is valid but ignored, because another part of the scenario overrides it.
Remove the setting, or change the part that overrides it.
JSON Test Description Specification

SR-FILE-001 error a file cannot be used
A file that the scenario names cannot be opened or read, is not a regular file, or has unusable content. More specific codes exist for most cases.
Check the path, the permissions and the content of the file. Relative paths start from the folder of the scenario.
JSON Test Description Specification, "Specification"

SR-SANDBOX-001 error a file outside of the sandbox
With `--sandbox` a scenario reads and writes only below its own folder and `--output`. This path leads outside: it is absolute, has `..`, or follows a symbolic link. Shaders may include files in the folder, by `#include "file"`.
Move the file into the scenario's folder; or run without `--sandbox` if you trust whoever wrote the scenario.
docs/command_line.md, "Scenarios from others"

SR-SHADER-001 error unknown entry point
The module does not have an entry point of this name. The message lists its entry points.
Set `entry` to one of them. The entry point of GLSL shaders is main.
SPIR-V specification, OpEntryPoint

SR-SHADER-002 error the entry point is for another stage
The entry point exists, but for another stage than the command or the shader resource requires, such as a fragment shader in a compute command.
Set `stage`, or compile the shader for the required stage.
SPIR-V specification, OpEntryPoint; {_INTERFACES}

SR-SHADER-003 error a workgroup without invocations
The workgroup size is 0 along an axis, for example because a specialization constant is 0, or the entry point does not declare a workgroup size.
Set the constant to at least 1; declare a LocalSize for the entry point.
Vulkan specification, "Compute Shaders", LocalSize and LocalSizeId

SR-SHADER-010 error the shader does not compile
The compiler reports errors in the source. The message is that of the compiler, with file and line.
Correct the source, or `build_options` and `include_dirs`.
GLSL specification; GL_KHR_vulkan_glsl

SR-SHADER-011 error no suitable compiler
No compiler that can compile this source was found.
Install a compiler as the help of the message says, or give its path with --glslang.
docs/shaders.md

SR-SHADER-012 error invalid SPIR-V module
The module is malformed: a wrong magic number, an instruction that extends beyond the end, or an id that is not defined.
Compile the shader again; `spirv-val` reports more details.
SPIR-V specification, "Physical Layout of a SPIR-V Module and Instruction"

SR-BIND-001 error missing binding
The shader uses a variable at this set and binding, and the command does not bind a resource there. The behavior of the driver is undefined; it may crash.
Add the binding that the help of the message shows, or remove the variable from the shader.
{_INTERFACES}, "DescriptorSet and Binding Assignment"

SR-BIND-002 warning unused binding
The command binds a resource to a set and binding that the shader does not use. Often set and id are swapped, or the compiler removed a variable that has no effect.
Remove the binding, or correct its set and id.
{_INTERFACES}, "DescriptorSet and Binding Assignment"

SR-BIND-003 error the wrong kind of resource
The shader declares one kind of resource at this binding and the scenario binds another, such as a buffer instead of an image.
Bind a resource of the right kind, or change the declaration.
{_INTERFACES}, "Descriptor Set Interface"

SR-BIND-004 error descriptor_type does not match the shader
The descriptor type in the scenario is not that of the variable that the shader declares at this binding.
Omit `descriptor_type`: the default AUTO uses the type that the shader declares.
{_INTERFACES}, "Descriptor Set Interface"

SR-BIND-005 warning the buffer is smaller than the block
The block that the shader declares is larger than the buffer. Accesses beyond the end of the buffer read or write other memory, unless the run has --enable-robustness-features.
Make the buffer as large as the block, or declare a runtime array at the end of the block.
{_INTERFACES}, "Descriptor Set Interface"; "Shaders", "Robust Buffer Access"

SR-BIND-006 error variables of different kinds share a binding
The shader uses two variables at the same set and binding that need different descriptor types (images and samplers may share a combined image sampler).
Give each variable a binding of its own.
{_INTERFACES}, "DescriptorSet and Binding Assignment"

SR-BIND-007 error arrays of descriptors are not supported
The shader declares an array of resources at one binding. A scenario binds one resource to each binding.
Declare separate variables, each with its own binding.
{_INTERFACES}, "DescriptorSet and Binding Assignment"

SR-BIND-008 error unsupported kind of resource variable
The shader uses a texel buffer, an input attachment or an acceleration structure.
Use a storage buffer or an image instead.
{_INTERFACES}, "Descriptor Set Interface"

SR-BIND-009 error invalid resource declaration
A variable of the shader has no DescriptorSet or Binding decoration, has a type that is not a descriptor type, or there are two push constant blocks.
Declare set and binding: `layout(set = 0, binding = 1) ...`.
{_INTERFACES}, "Descriptor Set Interface" and "Push Constant Interface"

SR-BIND-010 warning registers that are one binding
A module made from HLSL uses several variables of one kind with the same set and binding, such as register(t0) and register(u0): the number of a register is the binding, whatever its letter. One resource is bound to all of them.
Give each register a number of its own, or write [[vk::binding(binding, set)]].
{_INTERFACES}, "DescriptorSet and Binding Assignment"

SR-ACCESS-001 warning a readonly resource is written
The scenario declares the resource as readonly, and this shader writes it. The write is performed.
Set shader_access of the resource to readwrite, or declare the variable readonly.
JSON Test Description Specification, `shader_access`

SR-ACCESS-002 warning a writeonly resource is read
The scenario declares the resource as writeonly, and this graph reads it. The content is kept here; other programs may discard it.
Set shader_access of the resource to readwrite (or readonly if it is not written).
JSON Test Description Specification, `shader_access`

SR-IMAGE-001 error the image has another dimensionality
The shader declares a 1D, 3D, cube, arrayed or multisampled image. Images of a scenario are two-dimensional with one layer and one sample.
Declare it as a 2D image.
Vulkan specification, "Image Views"; {_INTERFACES}

SR-IMAGE-002 error the texel type does not match the format
The shader declares texels as floating-point numbers, signed or unsigned integers, and the format of the image has another of the three. The values are undefined.
Declare the image as the help of the message says (image2D, iimage2D, uimage2D, ...), or change the format.
Vulkan specification, "Image Format and Type Matching"

SR-IMAGE-003 error the storage format differs and cannot be changed
The shader declares another format than the image has and uses texels in atomic operations, which need the declared format, or uses the image in a way that this program cannot follow.
Use the same format for both.
Vulkan specification, "SPIR-V and Vulkan Image Format Compatibility"; SPIR-V specification, OpImageTexelPointer

SR-IMAGE-004 warning the storage format differs
The shader declares another format than the image has, with texels of the same kind, as modules made from HLSL do: a RWTexture2D<float4> is Rgba32f there. The shader runs with the format of the image in its code; without any format where SPIR-V has no name for it, on devices that can do this.
Declare the format of the image: layout(rgba16f) in GLSL, [[vk::image_format("rgba16f")]] in HLSL.
Vulkan specification, "SPIR-V and Vulkan Image Format Compatibility"; shaderStorageImageReadWithoutFormat, shaderStorageImageWriteWithoutFormat

SR-IMAGE-005 error depth comparison is not supported
The shader declares a sampler with depth comparison (sampler2DShadow), which scenarios cannot describe.
Declare sampler2D and compare in the shader.
Vulkan specification, "Depth Compare Operation"

SR-STAGE-001 error a fragment shader input without a matching output
The fragment shader has an input at a location and component at which no output of the vertex shader begins. Its value is undefined.
Declare an output of the vertex shader with the same location and component, or remove the input.
{_INTERFACES}, "Interface Matching"

SR-STAGE-002 error an input and its output have different types
The vertex shader and the fragment shader declare different types at the same location. Only the size of vectors may differ: the fragment shader may declare fewer components (this requires the feature maintenance4).
Declare both with the same type.
{_INTERFACES}, "Interface Matching"

SR-STAGE-003 error an input that must be flat
Integers and 64-bit floating-point numbers are not interpolated, so that fragment shader inputs of these types must be declared flat.
Add `flat` to the declaration of the input.
Vulkan specification, "Shaders", "Interpolation Decorations"

SR-STAGE-004 error invalid inputs or outputs
An input or output has no location, overlaps another one, has a component that does not fit its type, or has a type that is not allowed between stages.
Declare a separate location for each: `layout(location = 1) out vec4 color;`.
{_INTERFACES}, "Location Assignment" and "Component Assignment"

SR-STAGE-005 error the vertex shader has vertex inputs
A drawing of a scenario has three vertices and no vertex buffer, so that inputs of the vertex shader have no data.
Use gl_VertexIndex, and read vertex data from a storage or uniform buffer.
{_INTERFACES}, "Vertex Input Interface"

SR-STAGE-006 error invalid execution modes of the fragment shader
A fragment shader must have OriginUpperLeft, must not have OriginLowerLeft or PixelCenterInteger, and must have DepthReplacing if it writes a depth. Compilers of GLSL and HLSL ensure this; other SPIR-V modules may not.
Add or remove the OpExecutionMode.
Vulkan specification, "SPIR-V environment", rules OriginLowerLeft, PixelCenterInteger and FragDepth

SR-STAGE-007 warning the vertex shader does not write gl_Position
The vertex shader never writes gl_Position, so that the area that is drawn is undefined.
Write gl_Position.
Vulkan specification, "Built-In Variables", Position

SR-ATTACH-001 warning an output without an attachment
The fragment shader has an output at a location for which the drawing has no attachment (or one that only blending would use). The values are discarded.
Add an image to color_attachment_refs: attachment 0 is location 0, and so on.
{_INTERFACES}, "Fragment Output Interface"

SR-ATTACH-002 warning an attachment that is never written
The drawing has an attachment, and the fragment shader does not have an output at its location. The image keeps its content. In other programs it may become undefined.
Add the output, or remove the image from color_attachment_refs.
{_INTERFACES}, "Fragment Output Interface"

SR-ATTACH-003 error the type of an output does not match the attachment
Images of integer formats require integers of the same signedness, all others floating-point numbers; the values have 16 or 32 bits. Otherwise the result is undefined.
Declare the output as vec4, ivec4 or uvec4, as the format requires.
{_INTERFACES}, "Fragment Output Interface"

SR-ATTACH-004 warning components that are not written
The format of the attachment has more components than the output. The other components keep their values. In other programs they may become undefined.
Declare the output with all components, such as vec4 for four.
{_INTERFACES}, "Fragment Output Interface"

SR-ATTACH-005 warning the image is not declared as an attachment
The drawing writes into an image whose color_attachment is false. Other programs create the image without the usage that drawing requires.
Set color_attachment of the image to true.
JSON Test Description Specification, "Image"

SR-ATTACH-006 error a format that cannot be drawn into
Compressed formats and those of depth and stencil cannot be colour attachments.
Choose a colour format such as VK_FORMAT_R8G8B8A8_UNORM.
Vulkan specification, "Formats", VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT

SR-ATTACH-007 error attachments of different sizes
All attachments of a drawing (each as large as its mip level) and the render_extent must have the same width and height.
Give them the same size, or leave render_extent out.
JSON Test Description Specification, "Dispatch Fragment"

SR-ATTACH-008 error an attachment that the shaders use
The mip level that is drawn into, or memory that it shares in a memory group, is also bound for the shaders. The values that they read are undefined.
Draw into another image, or bind another mip level with lod.
Vulkan specification, "Render Pass", feedback loops

SR-ATTACH-010 error an image that is attached twice
Two attachments of a drawing are the same mip level of the same image, or share memory in a memory group. Which of the two values is stored is undefined.
Give each output of the fragment shader an image or a mip level of its own.
Vulkan specification, "Render Pass", feedback loops

SR-TENSOR-001 error the tensor has another rank
The shader or graph declares a tensor with another number of dimensions than the tensor of the scenario.
Give both the same number of dimensions; a scalar is of rank 1 for shaders.
SPV_ARM_tensors, OpTypeTensorARM

SR-TENSOR-002 error the tensor has elements of another type
The format of the tensor cannot be read as the element type that the shader or graph declares.
Change the `format` of the tensor, or the declaration.
SPV_ARM_tensors; VK_ARM_tensors

SR-TENSOR-003 error the tensor has another shape
The shader or graph declares a tensor of a fixed shape, and the tensor of the scenario has another one.
Give the tensor the declared shape.
SPV_ARM_tensors, OpTypeTensorARM

SR-GRAPH-001 error unknown graph entry point
The SPIR-V module that dispatch_spirv_graph names does not have a graph entry point with the name in `entry`.
Set `entry` to one of the graphs that the message lists.
SPV_ARM_graph, OpGraphEntryPointARM

SR-GRAPH-002 error missing graph constant
The graph uses a constant for which the command does not list a graph_constant. The position in `graph_constants` is the id of the constant.
Add the graph_constant at this position.
SPV_ARM_graph, OpGraphConstantARM; VkDataGraphPipelineConstantARM

SR-GRAPH-003 error a graph constant of another type or shape
The graph_constant at this position does not have the shape or the element type that the graph declares.
Use the declared shape and format.
SPV_ARM_graph, OpGraphConstantARM

SR-GRAPH-004 error unknown graph constant
The command lists more graph constants than the graph declares.
Remove it.
SPV_ARM_graph, OpGraphConstantARM

SR-GRAPH-005 error binding that is not an input or output of the graph
The command binds a resource to a set and binding that is neither an input nor an output of the graph.
Bind it to one of the inputs and outputs that the message lists.
SPV_ARM_graph, OpGraphEntryPointARM

SR-LAYOUT-001 error a block without a layout
A member of a block has no Offset, ArrayStride, MatrixStride, RowMajor or ColMajor decoration, is a Boolean, or is a runtime array outside of a storage buffer, so that its memory layout is unknown. GLSL compilers do not write such modules.
Compile the shader again, or add the decoration.
{_INTERFACES}, "Offset and Stride Assignment"

SR-LAYOUT-002 warning a member or stride that is not aligned
A member's offset or an array's stride is not a multiple of the alignment that the feature scalarBlockLayout requires. Some devices read such members incorrectly.
Compile the shader again with a standard layout (std140, std430, scalar).
{_INTERFACES}, "Alignment Requirements"

SR-LAYOUT-003 warning members that overlap
Two members of a block share bytes, a stride is smaller than the elements, or a runtime array is not the last member.
Correct the offsets and strides.
{_INTERFACES}, "Offset and Stride Assignment"

SR-PUSH-001 error the shader reads beyond push_constants_size
The shader reads more bytes of push constants than the shader resource gives room for.
Set push_constants_size to the size of the block, or leave it out.
{_INTERFACES}, "Push Constant Interface"

SR-PUSH-002 error the push constant data does not fit
The raw_data of the command holds more bytes than push_constants_size says, or fewer than the shader reads.
Make the data as large as the block.
JSON Test Description Specification, `push_constants_size`

SR-PUSH-003 warning push constants without data
The shader reads push constants, and the command does not set any. They are zero here and undefined in other programs.
Add push_data_ref with the raw_data that holds them.
{_INTERFACES}, "Push Constant Interface"

SR-PUSH-004 error more push constants than any device supports
push_constants_size is larger than any device supports (128 bytes are guaranteed, 256 are common).
Put the data into a buffer.
Vulkan specification, "Limits", maxPushConstantsSize

SR-DISPATCH-001 warning an empty dispatch
An entry of rangeND is 0, so that no invocation of the shader runs. Vulkan allows this; outputs keep their initial content.
Set each entry to at least 1, or remove the command.
Vulkan specification, "Dispatching Commands", vkCmdDispatch

SR-DISPATCH-002 warning far more workgroups than texels
The command dispatches several times as many workgroups as any resource that it binds has texels (elements, bytes), so that most of them do nothing. Often rangeND is mistaken for a number of invocations: it is a number of workgroups.
Divide the size of the image by the workgroup size of the shader, and round up.
Vulkan specification, "Dispatching Commands", vkCmdDispatch; JSON Test Description Specification, `rangeND`

SR-SPEC-001 warning unknown specialization constant
The scenario sets a constant id that the module does not declare; the value is ignored.
Correct the id; the message lists the constants of the module.
Vulkan specification, "Specialization Constants"

SR-SPEC-002 error the value does not fit the constant
The value is out of the range of the constant's type, or a fraction for an integer.
Use a value of the constant's type.
Vulkan specification, "Specialization Constants"

SR-LIMIT-001 error a workgroup is too large along an axis
The workgroup size of the shader is beyond maxComputeWorkGroupSize.
Make the workgroup smaller and dispatch more of them.
Vulkan specification, "Limits", maxComputeWorkGroupSize

SR-LIMIT-002 error a workgroup has too many invocations
The product of the workgroup's sizes is beyond maxComputeWorkGroupInvocations.
Make the workgroup smaller and dispatch more of them.
Vulkan specification, "Limits", maxComputeWorkGroupInvocations

SR-LIMIT-003 error too many workgroups
An entry of rangeND is beyond maxComputeWorkGroupCount.
Spread the workgroups over x, y and z, or split the dispatch.
Vulkan specification, "Limits", maxComputeWorkGroupCount

SR-LIMIT-004 error too much shared memory
The Workgroup variables of the shader take more than maxComputeSharedMemorySize.
Use smaller tiles.
Vulkan specification, "Limits", maxComputeSharedMemorySize

SR-LIMIT-005 error a descriptor set number that the device does not have
The shader uses a descriptor set at or beyond maxBoundDescriptorSets.
Use lower set numbers (every device has the sets 0 to 3).
Vulkan specification, "Limits", maxBoundDescriptorSets

SR-LIMIT-006 error too many resources of a kind
The shader uses more buffers, images, samplers or tensors than a limit of the device for one stage.
Combine several into one buffer, or split the shader.
Vulkan specification, "Shader Resource Limits"

SR-LIMIT-007 error too many bytes of push constants
push_constants_size, or an offset in the push constant block, is beyond maxPushConstantsSize.
Put the data into a buffer.
Vulkan specification, "Limits", maxPushConstantsSize

SR-LIMIT-008 error a buffer too large for its descriptor
The buffer is larger than maxUniformBufferRange or maxStorageBufferRange allows for its descriptor type.
Bind a smaller buffer, or a uniform buffer as a storage buffer.
Vulkan specification, "Limits", maxUniformBufferRange and maxStorageBufferRange

SR-LIMIT-009 error an image too large
The image is wider or higher than maxImageDimension2D.
Split the image.
Vulkan specification, "Limits", maxImageDimension2D

SR-LIMIT-010 error too many inputs, outputs or attachments of a drawing
A location is beyond maxVertexOutputComponents, maxFragmentInputComponents (four components a location) or maxFragmentOutputAttachments, or there are more attachments than maxColorAttachments.
Use lower locations and fewer attachments (every device has four).
{_INTERFACES}, "Location Assignment"; "Limits"

SR-FEATURE-001 error the device lacks a capability of the shader
The module declares a SPIR-V capability or extension, or has a version, that needs a feature, extension or property that the device does not have. A run ends with exit code 6, which suites count as skipped.
Use another device, or write the shader without it.
Vulkan specification, "SPIR-V Capabilities" and "SPIR-V Extensions"

SR-FEATURE-002 error the device lacks a feature that the scenario asks for
A part of the scenario other than a SPIR-V capability needs a device feature: the layout of a block, a custom border color, tensors, or graphs.
Use another device, or remove that part.
Vulkan specification, "Features"
"""
