#version 450
// Inclusive prefix sums of blocks of 256 values (Hillis and Steele), and the total of each block.
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer From { uint from[]; };
layout(set = 0, binding = 1) writeonly buffer To { uint to[]; };
layout(set = 0, binding = 2) writeonly buffer Totals { uint totals[]; };
shared uint partial[256];

void main() {
    uint here = gl_LocalInvocationID.x;
    uint i = gl_GlobalInvocationID.x;
    uint sum = i < uint(from.length()) ? from[i] : 0;
    partial[here] = sum;
    for (uint distance = 1; distance < 256; distance *= 2) {
        barrier();
        uint other = here >= distance ? partial[here - distance] : 0;
        barrier();
        sum += other;
        partial[here] = sum;
    }
    if (i < uint(to.length())) {
        to[i] = sum;
    }
    if (here == 255) {
        totals[gl_WorkGroupID.x] = sum;
    }
}
