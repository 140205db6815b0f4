#version 450

// The smallest and the largest number of an array: one workgroup, each of whose invocations looks at every 64th number.

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Numbers { float numbers[]; };
layout(set = 0, binding = 1) writeonly buffer Extremes { float extremes[]; };

shared float smallest[64];
shared float largest[64];

void main() {
    uint me = gl_LocalInvocationIndex;
    smallest[me] = largest[me] = numbers[min(me, uint(numbers.length()) - 1)];
    for (uint at = me; at < numbers.length(); at += 64) {
        smallest[me] = min(smallest[me], numbers[at]);
        largest[me] = max(largest[me], numbers[at]);
    }
    for (uint half_way = 32; half_way > 0; half_way /= 2) {
        barrier();
        if (me < half_way) {
            smallest[me] = min(smallest[me], smallest[me + half_way]);
            largest[me] = max(largest[me], largest[me + half_way]);
        }
    }
    if (me == 0) {
        extremes[0] = smallest[0];
        extremes[1] = largest[0];
    }
}
