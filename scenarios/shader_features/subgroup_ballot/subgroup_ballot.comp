#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Values { uint values[]; };
layout(set = 0, binding = 1) buffer Each { uint each[]; };
layout(set = 0, binding = 2) buffer Totals { uint totals[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint x = values[i];
    uvec4 odd = subgroupBallot(x % 2u == 1u);
    each[i] = subgroupInverseBallot(odd) ? 1u : 0u;
    each[i] += subgroupBallotBitExtract(odd, gl_SubgroupInvocationID) ? 2u : 0u;
    each[i] += subgroupBroadcastFirst(gl_SubgroupID) == gl_SubgroupID ? 4u : 0u;
    if (subgroupElect()) {
        atomicAdd(totals[0], subgroupBallotBitCount(odd));
    }
}
