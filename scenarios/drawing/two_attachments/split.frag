#version 450

layout(set = 0, binding = 0) readonly buffer Heights { float heights[]; };
layout(location = 0) out vec2 slope;
layout(location = 1) out uint band;

float height_at(ivec2 p) {
    p = clamp(p, ivec2(0), ivec2(31, 23));
    return heights[p.y * 32 + p.x];
}

void main() {
    ivec2 p = ivec2(gl_FragCoord.xy);
    slope = vec2(height_at(p + ivec2(1, 0)) - height_at(p - ivec2(1, 0)),
                 height_at(p + ivec2(0, 1)) - height_at(p - ivec2(0, 1)));
    band = uint(height_at(p)) / 10u;
}
