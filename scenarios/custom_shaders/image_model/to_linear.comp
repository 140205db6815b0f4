#version 460
#extension GL_ARM_tensors : require

// A picture as numbers that are proportional to the light: its bytes are squared, as an approximation of sRGB.

layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) uniform sampler2D picture;
layout(set = 0, binding = 1) uniform tensorARM<float, 4> light;

void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    if (at.x >= tensorSizeARM(light, 2) || at.y >= tensorSizeARM(light, 1)) {
        return;
    }
    vec4 texel = texelFetch(picture, ivec2(at), 0);
    for (uint channel = 0; channel < 4; ++channel) {
        tensorWriteARM(light, uint[](0, at.y, at.x, channel), texel[channel] * texel[channel]);
    }
}
