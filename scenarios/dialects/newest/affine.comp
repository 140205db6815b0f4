#version 450
layout(local_size_x = 16) in;
layout(constant_id = 0) const int factor = 1;
layout(constant_id = 1) const int offset = 0;
layout(set = 0, binding = 0) readonly buffer From { int from[]; };
layout(set = 0, binding = 1) writeonly buffer To { int to[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    to[i] = factor * from[i] + offset;
}
