#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_8bit_storage : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { int8_t a[]; };
layout(set = 0, binding = 1) readonly buffer B { uint8_t b[]; };
layout(set = 0, binding = 2) writeonly buffer Signed { int8_t signed_sums[]; };
layout(set = 0, binding = 3) writeonly buffer Unsigned { uint8_t products[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    signed_sums[i] = a[i] + a[255 - i];
    products[i] = b[i] * b[i];
}
