#version 450
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Data { float data[]; };

// A square root of two steps after Heron, which is not exact.
void main() {
    float x = data[gl_GlobalInvocationID.x];
    float root = 0.5 * (1.0 + x);
    for (int i = 0; i < 2; i++) root = 0.5 * (root + x / root);
    data[gl_GlobalInvocationID.x] = root;
}
