#version 450

// A picture of whole numbers: texel (x, y) is (x, y, x * y, 1).
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, rgba32f) writeonly uniform image2D picture;

void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(picture, at, vec4(at.x, at.y, at.x * at.y, 1));
}
