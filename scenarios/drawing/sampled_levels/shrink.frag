#version 450

layout(set = 0, binding = 0) uniform usampler2D larger;
layout(location = 0) out uvec4 color;

// each texel is the largest of four of the level above
void main() {
    ivec2 p = ivec2(gl_FragCoord.xy) * 2;
    color = max(max(texelFetch(larger, p, 0), texelFetch(larger, p + ivec2(1, 0), 0)),
                max(texelFetch(larger, p + ivec2(0, 1), 0), texelFetch(larger, p + ivec2(1, 1), 0)));
}
