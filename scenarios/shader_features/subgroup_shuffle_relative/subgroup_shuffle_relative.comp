#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle_relative : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Values { uint values[]; };
layout(set = 0, binding = 1) buffer Each { uint each[]; };
layout(set = 0, binding = 2) buffer Totals { uint totals[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint x = values[i];
    uint moved = subgroupShuffleDown(subgroupShuffleUp(x, 1u), 1u);
    bool last = gl_SubgroupInvocationID == gl_SubgroupSize - 1u;
    each[i] = last ? x : moved;
    atomicAdd(totals[0], each[i]);
}
