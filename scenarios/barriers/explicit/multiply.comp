#version 450
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1) readonly buffer B { uint b[]; };
layout(set = 0, binding = 2) writeonly buffer Product { uint product[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    // the neighbour's value, which another invocation has written
    product[i] = a[i] * b[(i + 1) % uint(b.length())];
}
