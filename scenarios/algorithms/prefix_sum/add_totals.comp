#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) buffer Sums { uint sums[]; };
layout(set = 0, binding = 1) readonly buffer Totals { uint totals[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (gl_WorkGroupID.x > 0 && i < uint(sums.length())) {
        sums[i] += totals[gl_WorkGroupID.x - 1];
    }
}
