#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };

// All invocations read the sum before one of them has written it; atomicAdd would be right.
void main() {
    uint sum = data[0];
    barrier();
    data[0] = sum + 1u;
}
