#version 450

layout(set = 0, binding = 0) readonly buffer Corners { vec2 corners[3]; };  // in texels
layout(location = 0) flat out uint shade;

void main() {
    gl_Position = vec4(corners[gl_VertexIndex] / 16.0 - 1.0, 0.0, 1.0);
    shade = 200u;
}
