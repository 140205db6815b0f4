#version 450
// One pass of a separable filter, along x or along y; what lies outside the image is the nearest pixel of its edge.
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const bool vertical = false;
layout(push_constant) uniform Push { int width; int height; } size;
layout(set = 0, binding = 0) readonly buffer Weights { float weights[]; };
layout(set = 0, binding = 1) readonly buffer From { float from[]; };
layout(set = 0, binding = 2) writeonly buffer To { float to[]; };

void main() {
    ivec2 here = ivec2(gl_GlobalInvocationID.xy);
    if (here.x >= size.width || here.y >= size.height) {
        return;
    }
    int radius = weights.length() / 2;
    float sum = 0.0;
    for (int k = -radius; k <= radius; k++) {
        ivec2 there = here + (vertical ? ivec2(0, k) : ivec2(k, 0));
        there = clamp(there, ivec2(0), ivec2(size.width - 1, size.height - 1));
        sum += weights[k + radius] * from[there.y * size.width + there.x];
    }
    to[here.y * size.width + here.x] = sum;
}
