#version 450
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { uint64_t a[]; };
layout(set = 0, binding = 1) buffer Results { uint64_t results[2]; };

void main() {
    uint64_t x = a[gl_GlobalInvocationID.x];
    atomicAdd(results[0], x);
    atomicMax(results[1], x);
}
