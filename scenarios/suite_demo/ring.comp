#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, rgba8) uniform writeonly image2D picture;

// Its middle is wrong: it should be at (32, 32).
void main() {
    ivec2 place = ivec2(gl_GlobalInvocationID.xy);
    float radius = distance(vec2(place), vec2(35.0, 32.0));
    vec4 color = abs(radius - 20.0) < 6.0 ? vec4(0.2, 0.6, 1.0, 1.0) : vec4(0.0, 0.0, 0.0, 1.0);
    imageStore(picture, place, color);
}
