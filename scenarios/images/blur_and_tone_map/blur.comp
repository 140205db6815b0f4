#version 450
// One pass of a separable blur, along a row or a column. The sampler holds on to the edge.
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const bool VERTICAL = false;
layout(set = 0, binding = 0) uniform sampler2D from;
layout(set = 0, binding = 1, rgba16f) uniform writeonly image2D to;
layout(set = 0, binding = 2) readonly buffer Weights { float weights[]; };

void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    ivec2 size = imageSize(to);
    if (any(greaterThanEqual(p, size))) return;
    vec2 texel = 1.0 / vec2(size);
    vec2 step = VERTICAL ? vec2(0.0, texel.y) : vec2(texel.x, 0.0);
    vec2 middle = (vec2(p) + 0.5) * texel;
    int radius = weights.length() / 2;
    vec4 sum = vec4(0.0);
    for (int k = -radius; k <= radius; ++k) sum += weights[k + radius] * textureLod(from, middle + step * float(k), 0.0);
    imageStore(to, p, sum);
}
