#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { float16_t a[]; };
layout(set = 0, binding = 1) writeonly buffer Results { float16_t results[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    float16_t half_of_it = a[i] * float16_t(0.5);
    results[i] = half_of_it + float16_t(1.0);
}
