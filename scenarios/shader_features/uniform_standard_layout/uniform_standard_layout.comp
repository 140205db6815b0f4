#version 450
#extension GL_EXT_scalar_block_layout : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) uniform Table { float table[64]; };
layout(set = 0, binding = 1) writeonly buffer Reversed { float reversed[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    reversed[i] = table[63 - i];
}
