#version 450

layout(push_constant) uniform View {
    ivec2 center;  // 1.0 is 4096
    int step;      // from texel to texel
};
layout(constant_id = 0) const uint MOST = 32;
layout(location = 0) out uvec4 color;

// integers, so that every device draws the same picture
void main() {
    ivec2 c = center + (ivec2(gl_FragCoord.xy) - ivec2(48, 32)) * step;
    ivec2 z = ivec2(0);
    uint count = 0;
    while (count < MOST && z.x * z.x + z.y * z.y <= 4 * 4096 * 4096) {
        z = ivec2((z.x * z.x - z.y * z.y) >> 12, (z.x * z.y) >> 11) + c;
        count++;
    }
    color = count == MOST ? uvec4(0, 0, 0, 255) : uvec4(count * 8, count * 5, 255 - count * 7, 255) & 255u;
}
