#version 450
#extension GL_EXT_null_initializer : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) writeonly buffer Seen { uint seen[]; };
shared uint cells[64] = {};

void main() {
    uint i = gl_LocalInvocationIndex;
    seen[gl_GlobalInvocationID.x] = cells[63 - i] + 7u;
}
