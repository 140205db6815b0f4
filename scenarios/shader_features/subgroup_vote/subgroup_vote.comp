#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_vote : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Values { uint values[]; };
layout(set = 0, binding = 1) buffer Each { uint each[]; };
layout(set = 0, binding = 2) buffer Totals { uint totals[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint x = values[i];
    uint bits = 0;
    bits |= subgroupAll(x < 1000u) ? 1u : 0u;
    bits |= subgroupAny(x >= 1000u) ? 2u : 0u;
    bits |= subgroupAllEqual(gl_SubgroupID) ? 4u : 0u;
    each[i] = bits;
    if (x % 2u == 1u) {
        bits = subgroupAll(x % 2u == 1u) ? 1u : 0u;
        atomicAdd(totals[0], bits);
    }
}
