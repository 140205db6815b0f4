#version 450
// Looks at a picture from one picture before it to one behind it, in steps of a third of a texel.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) uniform sampler2D picture;
layout(set = 0, binding = 1, rgba8) uniform writeonly image2D seen;

void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    ivec2 size = imageSize(seen);
    if (any(greaterThanEqual(p, size))) return;
    vec2 position = (vec2(p) + 0.5) / vec2(size) * 3.0 - 1.0;
    imageStore(seen, p, textureLod(picture, position, 0.0));
}
