#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_NV_shader_subgroup_partitioned : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Values { uint values[]; };
layout(set = 0, binding = 1) buffer Each { uint each[]; };
layout(set = 0, binding = 2) buffer Totals { uint totals[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint x = values[i];
    uvec4 alike = subgroupPartitionNV(x % 3u);
    each[i] = subgroupPartitionedAddNV(1u, alike) == subgroupBallotBitCount(alike) ? 1u : 0u;
    atomicAdd(totals[0], subgroupInverseBallot(alike) ? 1u : 0u);
}
