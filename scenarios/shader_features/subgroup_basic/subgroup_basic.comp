#version 450
#extension GL_KHR_shader_subgroup_basic : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Values { uint values[]; };
layout(set = 0, binding = 1) buffer Each { uint each[]; };
layout(set = 0, binding = 2) buffer Totals { uint totals[]; };
shared uint elected;

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint x = values[i];
    if (gl_LocalInvocationIndex == 0) {
        elected = 0;
    }
    barrier();
    if (subgroupElect()) {
        atomicAdd(elected, 1u);
    }
    subgroupMemoryBarrier();
    barrier();
    each[i] = uint(gl_SubgroupInvocationID < gl_SubgroupSize && gl_SubgroupID < gl_NumSubgroups);
    totals[gl_WorkGroupID.x] = uint(elected == gl_NumSubgroups);
}
