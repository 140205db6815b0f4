"""The text of `codes`: of each code a line with its severity and title, its meaning, how to mend it, and its source."""

# Each paragraph is four lines. Lines may be as long as their sentences: this is prose, wrapped by whoever prints it.
# ruff: noqa: E501

from typing import Final

_INTERFACES: Final = 'Vulkan specification, "Shader Interfaces"'

TABLE: Final = f"""
SR-JSON-001 error the text is not JSON
The file breaks the syntax of JSON: a comma too many or too few, a quote that is not closed, a comment, a number that is none. What follows cannot be read.
Look at the place that the message names; the mistake is there or shortly before it.
JSON (RFC 8259); JSON Test Description Specification, "Specification"

SR-JSON-002 error a key appears twice
One object has the same key twice. Programs differ in which one they take, so neither is taken.
Keep one of the two.
JSON (RFC 8259), section 4

SR-JSON-003 error unknown key
An object has a key that its kind does not have. Other programs pass over it without a word, so that a misspelt option has no effect.
Correct the spelling (the message names a close match where there is one), or remove the key.
JSON Test Description Specification

SR-JSON-004 error a required key is missing
An object lacks a key that its kind must have.
Add the key; `scenario-runner schema` prints what each kind has.
JSON Test Description Specification

SR-JSON-005 error a value that the key cannot have
A value has the wrong type, is out of range, or is none of the allowed words.
Write what the message expects.
JSON Test Description Specification

SR-JSON-006 error unknown kind of resource or command
An entry of `resources` or `commands` is an object with one key, its kind; this kind does not exist, or belongs into the other list.
Use one of the kinds that the help lists.
JSON Test Description Specification, "Resources" and "Commands"

SR-JSON-007 error the file cannot be taken in as text
The file is not UTF-8, or so large that it holds data that belongs into files of its own.
Save it as UTF-8; keep data in the .npy files that the scenario names.
JSON (RFC 8259), section 8.1

SR-JSON-008 warning a deprecated spelling
The value is accepted with the meaning that older programs gave it.
Write it as the help says.
JSON Test Description Specification

SR-REF-001 error no resource has this uid
A command or resource names a uid that no resource has.
Correct the spelling, or add the resource. The message names a close match where there is one.
JSON Test Description Specification, "Resources"

SR-REF-002 error the resource is of another kind
A uid is there, but names a resource of a kind that cannot stand here: a buffer where a shader is wanted, for instance.
Name a resource of the kind that the message expects.
JSON Test Description Specification

SR-REF-003 error a uid is used twice
Two resources have the same uid. They are unique over all kinds of resources.
Rename one of them.
JSON Test Description Specification, "Resources"

SR-CONFLICT-002 warning a setting without effect
What is written is right and changes nothing, because another part of the scenario rules it out.
Remove it, or change what rules it out.
JSON Test Description Specification

SR-FILE-001 error a file cannot be used
A file that the scenario names is missing, cannot be read or written, or does not hold what its kind of file holds.
Relative paths start from the scenario's folder. Check the path and the file.
JSON Test Description Specification, "Specification"

SR-SANDBOX-001 error a file outside of the sandbox
With `--sandbox` a scenario reads and writes only below its own folder and `--output`. This path leads elsewhere: it is absolute, has `..`, or goes through a symbolic link. Shaders may include what lies in the folder, by `#include "file"`.
Move the file into the scenario's folder; or run without `--sandbox` if you trust whoever wrote the scenario.
docs/command_line.md, "Scenarios from others"

SR-SHADER-001 error no such entry point
The module has no entry point of this name. The message lists those that it has.
Set `entry` to one of them. What GLSL compiles to has the entry point main.
SPIR-V specification, OpEntryPoint

SR-SHADER-002 error the entry point is for another stage
The entry point exists, but for another stage than the shader resource says: a fragment shader in a compute command.
Set `stage`, or compile the shader for the stage that is wanted.
SPIR-V specification, OpEntryPoint; {_INTERFACES}

SR-SHADER-003 error a workgroup without invocations
The workgroup size is 0 along an axis, which a specialization constant of 0 brings about, or a module of its own making has no workgroup size at all.
Give the constant a value of at least 1; give the entry point a LocalSize.
Vulkan specification, "Compute Shaders", LocalSize and LocalSizeId

SR-SHADER-010 error the shader does not compile
The compiler refused the source. The message is the compiler's own, with file and line.
Correct the source, or `build_options` and `include_dirs`.
GLSL specification; GL_KHR_vulkan_glsl

SR-SHADER-011 error no compiler was found
No compiler on this machine can compile the source.
Do what the help says, or give the compiler's path with --glslang.
docs/shaders.md

SR-SHADER-012 error the file is not a valid SPIR-V module
The bytes break the rules of a SPIR-V module: a wrong magic number, an instruction that reaches beyond the end, an id without a definition.
Make the file anew; `spirv-val` says more of what is wrong.
SPIR-V specification, "Physical Layout of a SPIR-V Module and Instruction"

SR-BIND-001 error nothing is bound to what the shader uses
The shader uses a variable at this set and binding, and the command binds nothing there. Drivers crash on it or give garbage.
Add the binding that the help shows, or remove the variable from the shader.
{_INTERFACES}, "DescriptorSet and Binding Assignment"

SR-BIND-002 warning bound, but not used by the shader
The command binds a resource to a set and binding that the shader does not declare. Often two numbers are swapped, or the compiler removed a variable that has no effect.
Remove the binding, or correct its set and id.
{_INTERFACES}, "DescriptorSet and Binding Assignment"

SR-BIND-003 error the wrong kind of resource
The shader declares one kind of resource here and the scenario binds another: a buffer for an image, a tensor for a buffer.
Bind a resource of the right kind, or change the declaration.
{_INTERFACES}, "Descriptor Set Interface"

SR-BIND-004 error descriptor_type contradicts the shader
The descriptor type that the scenario asks for cannot be what the shader declares at this binding.
Leave `descriptor_type` out: AUTO takes what the shader declares.
{_INTERFACES}, "Descriptor Set Interface"

SR-BIND-005 warning the buffer is smaller than the block
The block that the shader declares reaches beyond the end of the buffer. As long as no invocation touches what is missing, all is well; whoever does reads or writes other memory, unless the run has --enable-robustness-features.
Make the buffer as large as the block, or declare a runtime array at the end of the block.
{_INTERFACES}, "Descriptor Set Interface"; "Shaders", "Robust Buffer Access"

SR-BIND-006 error variables of different kinds share a binding
The shader uses two variables at the same set and binding, and no descriptor can be both (images and samplers may share a combined image sampler).
Give each variable a binding of its own.
{_INTERFACES}, "DescriptorSet and Binding Assignment"

SR-BIND-007 error an array of descriptors
The shader declares an array of resources at one binding. A scenario binds one resource to each binding.
Declare as many variables with a binding each.
{_INTERFACES}, "DescriptorSet and Binding Assignment"

SR-BIND-008 error a kind of variable that scenarios have no resource for
The shader uses a texel buffer, an input attachment or an acceleration structure.
Use a storage buffer or an image instead.
{_INTERFACES}, "Descriptor Set Interface"

SR-BIND-009 error a declaration that nothing can be bound to
A variable of the shader has no DescriptorSet or Binding decoration, or a type that no descriptor has, or there are two blocks of push constants.
Declare set and binding: `layout(set = 0, binding = 1) ...`.
{_INTERFACES}, "Descriptor Set Interface" and "Push Constant Interface"

SR-ACCESS-001 warning a readonly resource is written
The scenario says that shaders only read the resource; this one writes it. The write happens all the same.
Give the resource the shader_access readwrite, or declare the variable readonly.
JSON Test Description Specification, `shader_access`

SR-ACCESS-002 warning a writeonly resource is read
The scenario says that shaders and graphs only write the resource; this one reads it. What it reads is there, and programs that believe the scenario may drop it.
Give the resource the shader_access readwrite (readonly where nothing writes it).
JSON Test Description Specification, `shader_access`

SR-IMAGE-001 error the image has another shape
The shader declares a 1D, 3D, cube, arrayed or multisampled image. Images of a scenario are two-dimensional with one layer and one sample.
Declare it as a 2D image.
Vulkan specification, "Image Views"; {_INTERFACES}

SR-IMAGE-002 error texels of another kind
The shader reads texels as floats, signed or unsigned integers, and the image's format holds another of the three. What comes out is undefined.
Declare the image as the help says (image2D, iimage2D, uimage2D, ...), or change the format.
Vulkan specification, "Image Format and Type Matching"

SR-IMAGE-003 error the storage format differs where it cannot be left open
The shader declares another format than the image has and uses texels in atomic operations, which need the declared format, or uses the image in a way that this program cannot follow.
Make both formats the same.
Vulkan specification, "SPIR-V and Vulkan Image Format Compatibility"; SPIR-V specification, OpImageTexelPointer

SR-IMAGE-004 warning the storage format differs
The shader declares another format than the image has, with texels of the same kind, as modules made from HLSL do: a RWTexture2D<float4> is Rgba32f there. The shader runs with the format left open, on devices that can read and write storage images without a format.
Declare the image's format, or declare the image without a format.
Vulkan specification, "SPIR-V and Vulkan Image Format Compatibility"; shaderStorageImageReadWithoutFormat, shaderStorageImageWriteWithoutFormat

SR-IMAGE-005 error a sampler that compares
The shader declares a sampler with depth comparison (sampler2DShadow). The samplers of a scenario do not compare.
Declare sampler2D and compare in the shader.
Vulkan specification, "Depth Compare Operation"

SR-STAGE-001 error nothing is handed on to an input
The fragment shader takes an input at a location and component where the vertex shader has no output that begins there. What it reads is undefined.
Declare the same variable, with the same location and component, as an output of the vertex shader, or drop the input.
{_INTERFACES}, "Interface Matching"

SR-STAGE-002 error an input has another type than the output
The vertex shader and the fragment shader declare different types at the same location. Only vectors may differ: the fragment shader may take fewer components than there are (which takes the feature maintenance4).
Declare both with the same type.
{_INTERFACES}, "Interface Matching"

SR-STAGE-003 error an input that cannot be interpolated
Integers and 64-bit floats are not interpolated over a triangle, so inputs of these types must be declared flat in the fragment shader.
Write `flat` before the input.
Vulkan specification, "Shaders", "Interpolation Decorations"

SR-STAGE-004 error inputs or outputs that cannot be
An input or output has no location, shares its words with another, has a component that does not fit its type, or a type that stages cannot hand on.
Declare a location of its own for each: `layout(location = 1) out vec4 color;`.
{_INTERFACES}, "Location Assignment" and "Component Assignment"

SR-STAGE-005 error the vertex shader wants a vertex buffer
Drawings of a scenario have three vertices and no vertex buffer, so that an input of the vertex shader has nothing behind it.
Use gl_VertexIndex, and read data of vertices from a storage or uniform buffer.
{_INTERFACES}, "Vertex Input Interface"

SR-STAGE-006 error an execution mode of the fragment shader
A fragment shader needs OriginUpperLeft, must not have OriginLowerLeft or PixelCenterInteger, and needs DepthReplacing where it writes a depth. Compilers of GLSL and HLSL see to it; this is about SPIR-V from other hands.
Add or remove the OpExecutionMode.
Vulkan specification, "SPIR-V environment", rules OriginLowerLeft, PixelCenterInteger and FragDepth

SR-STAGE-007 warning the vertex shader gives no position
The vertex shader never writes gl_Position, so that nobody knows what the triangle covers.
Write gl_Position.
Vulkan specification, "Built-In Variables", Position

SR-ATTACH-001 warning an output that goes nowhere
The fragment shader has an output at a location for which the drawing has no attachment (or one that only blending would use). What it writes is lost.
Add an image to color_attachment_refs: attachment 0 is location 0, and so on.
{_INTERFACES}, "Fragment Output Interface"

SR-ATTACH-002 warning an attachment that is never written
The drawing has an attachment and the fragment shader no output at its location. What the image holds afterwards is undefined, even where nothing was drawn before.
Add the output, or remove the image from color_attachment_refs.
{_INTERFACES}, "Fragment Output Interface"

SR-ATTACH-003 error an output of another kind than the attachment
Images of integer formats take integers of the same signedness, all others floats; values have 16 or 32 bits. What is written otherwise is undefined.
Declare the output as vec4, ivec4 or uvec4, as the format wants it.
{_INTERFACES}, "Fragment Output Interface"

SR-ATTACH-004 warning components that are not written
The attachment's format has more components than the output gives. The others become undefined, they do not keep their values.
Declare the output with all components, vec4 for four.
{_INTERFACES}, "Fragment Output Interface"

SR-ATTACH-005 warning the image is not declared as an attachment
The drawing writes into an image whose color_attachment is false. Other programs create it without the usage that drawing takes.
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

SR-ATTACH-008 warning an attachment that is used twice
The same image level is attached twice, or bound for the shaders while it is drawn into. What they read, and which value stays, is undefined.
Draw into another image.
Vulkan specification, "Render Pass", feedback loops

SR-TENSOR-001 error the tensor has another rank
The shader or graph declares a tensor with another number of dimensions than the scenario's.
Give both the same number of dimensions; a scalar is of rank 1 for shaders.
SPV_ARM_tensors, OpTypeTensorARM

SR-TENSOR-002 error the tensor has elements of another type
The element type in the shader or graph is none that the tensor's format can be read as.
Change the `format` of the tensor, or the declaration.
SPV_ARM_tensors; VK_ARM_tensors

SR-TENSOR-003 error the tensor has another shape
The shader or graph declares a tensor of a fixed shape, and the scenario's has another one.
Give the tensor the declared shape.
SPV_ARM_tensors, OpTypeTensorARM

SR-GRAPH-001 error the module holds no graph
The SPIR-V module that dispatch_spirv_graph names has no entry point of a graph called like `entry`.
Set `entry` to one of the graphs that the message lists.
SPV_ARM_graph, OpGraphEntryPointARM

SR-GRAPH-002 error a graph constant without data
The graph reads a constant for which the command gives no graph_constant: their positions in `graph_constants` are the ids.
Add the graph_constant at this position.
SPV_ARM_graph, OpGraphConstantARM; VkDataGraphPipelineConstantARM

SR-GRAPH-003 error a graph constant of another type or shape
The graph_constant at this position does not have the shape or the element type that the graph declares.
Give it the declared ones.
SPV_ARM_graph, OpGraphConstantARM

SR-GRAPH-004 error a graph constant that the graph does not have
The command gives more graph constants than the graph reads.
Remove it.
SPV_ARM_graph, OpGraphConstantARM

SR-GRAPH-005 error bound where the graph has nothing
The command binds a resource to a set and binding that is neither an input nor an output of the graph.
Bind it to one of those that the message lists.
SPV_ARM_graph, OpGraphEntryPointARM

SR-LAYOUT-001 error a block without a layout
A member of a block has no Offset, ArrayStride, MatrixStride, RowMajor or ColMajor decoration, is a Boolean, or is a runtime array outside of a storage buffer, so that nobody knows where its bytes are. No GLSL compiler writes such a module.
Compile the shader anew, or add the decoration.
{_INTERFACES}, "Offset and Stride Assignment"

SR-LAYOUT-002 warning a member or stride that is not aligned
A member's offset or an array's stride is not a multiple of what even the feature scalarBlockLayout asks for. Some devices read such members wrongly.
Compile the shader anew with a standard layout (std140, std430, scalar).
{_INTERFACES}, "Alignment Requirements"

SR-LAYOUT-003 warning members that overlap
Two members of a block share bytes, a stride is smaller than the elements, or a runtime array is not the last member.
Correct the offsets and strides.
{_INTERFACES}, "Offset and Stride Assignment"

SR-PUSH-001 error the push constant block is larger than push_constants_size
The shader declares more bytes of push constants than the shader resource gives room for.
Set push_constants_size to the size of the block.
{_INTERFACES}, "Push Constant Interface"

SR-PUSH-002 error the push constant data has another size
The raw_data of the command holds more or fewer bytes than push_constants_size says.
Make both equal.
JSON Test Description Specification, `push_constants_size`

SR-PUSH-003 warning push constants without data
The shader reads push constants and the command gives none. They are zero here, and whatever was there on other programs.
Add push_data_ref with the raw_data that holds them.
{_INTERFACES}, "Push Constant Interface"

SR-PUSH-004 error more push constants than any device has
push_constants_size is far beyond what devices offer (128 bytes are sure, 256 are common).
Put the data into a buffer.
Vulkan specification, "Limits", maxPushConstantsSize

SR-DISPATCH-001 warning a dispatch that runs nothing
An entry of rangeND is 0, so that no invocation of the shader runs. Vulkan allows it, and outputs keep their initial content.
Write at least 1 in each entry, or remove the command.
Vulkan specification, "Dispatching Commands", vkCmdDispatch

SR-DISPATCH-002 warning far more workgroups than texels
The command dispatches several times as many workgroups as any resource that it binds has texels (elements, bytes), so most of them have nothing to do. Often rangeND was meant to count invocations: it counts workgroups.
Divide the size of the image by the workgroup size of the shader, and round up.
Vulkan specification, "Dispatching Commands", vkCmdDispatch; JSON Test Description Specification, `rangeND`

SR-SPEC-001 warning no such specialization constant
The scenario gives a value for a constant id that the module does not have; it has no effect.
Correct the id: the message lists those of the module.
Vulkan specification, "Specialization Constants"

SR-SPEC-002 error the value does not fit the constant
The value is out of the range of the constant's type, or a fraction for an integer.
Write a value of the constant's type.
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
Use lower set numbers (0 to 3 exist everywhere).
Vulkan specification, "Limits", maxBoundDescriptorSets

SR-LIMIT-006 error too many resources of a kind
The shader uses more buffers, images, samplers or tensors than one stage may.
Put several into one buffer, or split the shader.
Vulkan specification, "Shader Resource Limits"

SR-LIMIT-007 error too many bytes of push constants
push_constants_size, or an offset in the push constant block, is beyond maxPushConstantsSize.
Put the data into a buffer.
Vulkan specification, "Limits", maxPushConstantsSize

SR-LIMIT-008 error a buffer too large for its descriptor
The buffer is larger than maxUniformBufferRange or maxStorageBufferRange allows for the kind of descriptor it is bound as.
Bind a smaller buffer, or a uniform buffer as a storage buffer.
Vulkan specification, "Limits", maxUniformBufferRange and maxStorageBufferRange

SR-LIMIT-009 error an image too large
The image is wider or higher than maxImageDimension2D.
Split the image.
Vulkan specification, "Limits", maxImageDimension2D

SR-LIMIT-010 error too many inputs, outputs or attachments of a drawing
A location is beyond maxVertexOutputComponents, maxFragmentInputComponents (four components a location) or maxFragmentOutputAttachments, or there are more attachments than maxColorAttachments.
Use lower locations and fewer attachments (four exist everywhere).
{_INTERFACES}, "Location Assignment"; "Limits"

SR-FEATURE-001 error the device lacks what the shader's module asks for
The module declares a SPIR-V capability or extension, or has a version, that needs a feature, extension or property that the device does not have. A run ends with exit code 6, which suites count as skipped.
Use another device, or write the shader without it.
Vulkan specification, "SPIR-V Capabilities" and "SPIR-V Extensions"

SR-FEATURE-002 error the device lacks a feature that the scenario asks for
Something beside the shaders' capabilities needs a device feature: the layout of a block, a custom border color, tensors, graphs.
Use another device, or do without.
Vulkan specification, "Features"

SR-RUN-001 note right, but not run by this version
The scenario follows the format, and this version of the program does not carry this part out.
Nothing is wrong with the file.
README.md
"""
