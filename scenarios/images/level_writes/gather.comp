#version 450
// Reads every level through one binding that shows them all.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) uniform usampler2D pyramid;
layout(set = 0, binding = 1, rgba32ui) uniform writeonly uimage2D gathered;

void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(p, imageSize(gathered)))) return;
    uvec4 texels;
    for (int level = 0; level < 4; ++level) texels[level] = texelFetch(pyramid, p >> level, level).r;
    imageStore(gathered, p, texels);
}
