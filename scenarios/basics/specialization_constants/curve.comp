#version 450
// The workgroup's size is a specialization constant as well.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const float gain = 1.0;
layout(constant_id = 2) const int offset = 0;
layout(constant_id = 3) const bool negate = false;
layout(constant_id = 4) const uint mask = 0u;
layout(constant_id = 5) const float left_alone = 0.5;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2) writeonly buffer Masked { uint masked[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    float value = gain * float(x[i] + offset) + left_alone;
    y[i] = negate ? -value : value;
    masked[i] = uint(x[i]) & mask;
}
