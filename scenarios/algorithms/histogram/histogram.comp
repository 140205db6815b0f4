#version 450
// Each workgroup counts in shared memory and adds what it found to the buffer: atomics of both kinds.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Words { uint words[]; }; // four values of 8 bits in each
layout(set = 0, binding = 1) buffer Counts { uint counts[64]; };
shared uint local_counts[64];

void main() {
    uint here = gl_LocalInvocationID.x;
    local_counts[here] = 0;
    barrier();
    uint word = words[gl_GlobalInvocationID.x];
    for (uint shift = 0; shift < 32; shift += 8) {
        atomicAdd(local_counts[(word >> shift & 0xFF) / 4], 1);
    }
    barrier();
    atomicAdd(counts[here], local_counts[here]);
}
