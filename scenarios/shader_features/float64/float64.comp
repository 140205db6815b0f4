#version 450

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { double a[]; };
layout(set = 0, binding = 1) writeonly buffer Results { double results[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    precise double square = a[i] * a[i];
    precise double result = square - 0.25LF;
    results[i] = result;
}
