#version 450

layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, rgba32f) uniform image2D picture;

void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    imageStore(picture, p, imageLoad(picture, p) * 2.0);
}
