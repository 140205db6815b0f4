#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) uniform sampler2D small;
layout(set = 0, binding = 1, rgba32f) uniform writeonly image2D large;

void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    ivec2 size = imageSize(large);
    if (any(greaterThanEqual(p, size))) return;
    imageStore(large, p, textureLod(small, (vec2(p) + 0.5) / vec2(size), 0.0));
}
