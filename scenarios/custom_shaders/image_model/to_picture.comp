#version 460
#extension GL_ARM_tensors : require

// The way back: numbers as a picture of bytes. Its alpha is 1.

layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) uniform tensorARM<float, 4> light;
layout(set = 0, binding = 1, rgba8) writeonly uniform image2D picture;

void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    if (at.x >= tensorSizeARM(light, 2) || at.y >= tensorSizeARM(light, 1)) {
        return;
    }
    vec4 texel = vec4(1.0);
    for (uint channel = 0; channel < 3; ++channel) {
        float value;
        tensorReadARM(light, uint[](0, at.y, at.x, channel), value);
        texel[channel] = sqrt(clamp(value, 0.0, 1.0));
    }
    imageStore(picture, ivec2(at), texel);
}
