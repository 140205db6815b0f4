#version 450
// Copies the level that is bound: a binding with a lod shows that level alone.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) uniform sampler2D level;
layout(set = 0, binding = 1, rgba32f) uniform writeonly image2D copy;

void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(p, textureSize(level, 0)))) return;
    imageStore(copy, p, texelFetch(level, p, 0));
}
