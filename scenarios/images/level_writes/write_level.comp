#version 450
// Each level says how wide it is; the levels of a storage image are bound one by one.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, r32ui) uniform writeonly uimage2D level;

void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    ivec2 size = imageSize(level);
    if (any(greaterThanEqual(p, size))) return;
    imageStore(level, p, uvec4(size.x * 10000 + p.y * 100 + p.x));
}
