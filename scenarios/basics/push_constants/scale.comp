#version 450
layout(local_size_x = 32) in;
layout(push_constant) uniform Push { float scale; float offset; uint count; } push;
layout(set = 0, binding = 0) buffer Values { float values[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < push.count) {
        values[i] = values[i] * push.scale + push.offset;
    }
}
