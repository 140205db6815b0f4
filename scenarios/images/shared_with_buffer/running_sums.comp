#version 450
// The same memory as an array: each row becomes the sums of its first texels.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Texels { float texels[]; };
layout(push_constant) uniform Size { int width; };

void main() {
    uint row = gl_WorkGroupID.x * width;
    for (int x = 1; x < width; ++x) texels[row + x] += texels[row + x - 1];
}
