#version 450
#extension GL_EXT_shader_atomic_float : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) buffer Sums { float sums[2]; };
shared float group_sum;

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (gl_LocalInvocationIndex == 0) {
        group_sum = 0.0;
    }
    barrier();
    atomicAdd(sums[0], a[i]);
    atomicAdd(group_sum, a[i]);
    barrier();
    if (gl_LocalInvocationIndex == 0) {
        atomicAdd(sums[1], group_sum);
    }
}
