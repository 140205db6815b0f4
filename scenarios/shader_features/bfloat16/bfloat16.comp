#version 450
#extension GL_EXT_bfloat16 : require
#extension GL_EXT_shader_16bit_storage : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { bfloat16_t a[]; };
layout(set = 0, binding = 1) writeonly buffer Results { bfloat16_t results[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    results[i] = bfloat16_t(float(a[i]) * 2.0 + 1.0);
}
