#version 450
// The formats of the images decide what is stored: the shader sees numbers only.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) uniform sampler2D picture;
layout(set = 0, binding = 1, rgba16f) uniform writeonly image2D halves;
layout(set = 0, binding = 2, rgba8_snorm) uniform writeonly image2D signed_bytes;
layout(set = 0, binding = 3, rgba8ui) uniform writeonly uimage2D quarters;
layout(set = 0, binding = 4, r32ui) uniform writeonly uimage2D packed;

void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(p, textureSize(picture, 0)))) return;
    vec4 color = texelFetch(picture, p, 0);
    imageStore(halves, p, color);
    imageStore(signed_bytes, p, color * 2.0 - 1.0);
    uvec4 bytes = uvec4(color * 255.0 + 0.5);
    imageStore(quarters, p, bytes / 4u);
    imageStore(packed, p, uvec4(bytes.r | bytes.g << 8 | bytes.b << 16 | bytes.a << 24));
}
