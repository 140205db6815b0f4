#version 450

layout(binding = 0) uniform usamplerBuffer weights;
layout(binding = 1) readonly buffer Numbers { uint numbers[]; } both[2];
layout(binding = 2) writeonly buffer Sums { uint sums[]; };

void main() {
    uint i = gl_WorkGroupID.x;
    uvec2 weight = texelFetch(weights, int(i)).xy;
    uint sum = 0u;
    for (uint k = 0u; k < 2u; ++k)
        sum += weight[k] * both[k].numbers[i];
    sums[i] = sum;
}
