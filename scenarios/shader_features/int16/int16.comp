#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_16bit_storage : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { int16_t a[]; };
layout(set = 0, binding = 1) writeonly buffer Products { int16_t products[]; };
layout(set = 0, binding = 2) writeonly buffer Shifted { uint16_t shifted[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    products[i] = a[i] * int16_t(3);
    shifted[i] = uint16_t(a[i]) >> uint16_t(3);
}
