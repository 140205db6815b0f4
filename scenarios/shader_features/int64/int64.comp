#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { uint64_t a[]; };
layout(set = 0, binding = 1) writeonly buffer Hashes { uint64_t hashes[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint64_t x = a[i];
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdUL;
    x ^= x >> 33;
    hashes[i] = x;
}
