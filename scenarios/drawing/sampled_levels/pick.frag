#version 450

layout(set = 0, binding = 0) uniform usampler2D tiles;
layout(location = 0) out uvec4 color;

// four stripes, each from another mip level
void main() {
    vec2 at = gl_FragCoord.xy / vec2(64.0, 32.0);
    color = textureLod(tiles, at, floor(gl_FragCoord.y / 8.0));
}
