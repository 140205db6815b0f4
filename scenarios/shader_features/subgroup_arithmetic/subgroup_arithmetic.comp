#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Values { uint values[]; };
layout(set = 0, binding = 1) buffer Each { uint each[]; };
layout(set = 0, binding = 2) buffer Totals { uint totals[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint x = values[i];
    each[i] = subgroupInclusiveAdd(x) - subgroupExclusiveAdd(x);
    uint sum = subgroupAdd(x);
    uint least = subgroupMin(x);
    uint most = subgroupMax(x);
    uint all_bits = subgroupOr(x);
    uint odd_bits = subgroupXor(x);
    if (subgroupElect()) {
        atomicAdd(totals[0], sum);
        atomicMax(totals[1], 1000u - least);
        atomicMax(totals[2], most);
        atomicOr(totals[3], all_bits);
        atomicXor(totals[4], odd_bits);
    }
}
