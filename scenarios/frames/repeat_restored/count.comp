#version 450
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) buffer Counters { uint counters[]; };

void main() {
    counters[gl_GlobalInvocationID.x] += 1;
}
