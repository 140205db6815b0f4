#version 450
layout(local_size_x = 32) in;
layout(constant_id = 0) const uint factor = 1;
layout(set = 0, binding = 0) writeonly buffer Values { uint values[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    values[i] = factor * (i + 1);
}
