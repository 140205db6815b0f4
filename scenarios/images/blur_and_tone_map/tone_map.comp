#version 450
// Adds the glow of bright places to the picture, brings all light below one, and stores it for a screen.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, rgba16f) uniform readonly image2D picture;
layout(set = 0, binding = 1, rgba16f) uniform readonly image2D blurred;
layout(set = 0, binding = 2, rgba8) uniform writeonly image2D screen;
layout(push_constant) uniform Settings { float glow; float exposure; };

void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(p, imageSize(screen)))) return;
    vec3 light = mix(imageLoad(picture, p).rgb, imageLoad(blurred, p).rgb, glow) * exposure;
    vec3 mapped = light / (1.0 + light);
    imageStore(screen, p, vec4(pow(mapped, vec3(1.0 / 2.2)), 1.0));
}
