#version 450
// Conway's game of life on a torus.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, r32ui) uniform readonly uimage2D now;
layout(set = 0, binding = 1, r32ui) uniform writeonly uimage2D next;

void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    ivec2 size = imageSize(now);
    uint around = 0u;
    for (int y = -1; y <= 1; ++y)
        for (int x = -1; x <= 1; ++x)
            if (x != 0 || y != 0) around += imageLoad(now, (p + ivec2(x, y) + size) % size).r;
    uint alive = imageLoad(now, p).r;
    imageStore(next, p, uvec4(around == 3u || (alive == 1u && around == 2u) ? 1u : 0u));
}
