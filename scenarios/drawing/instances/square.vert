#version 450

layout(location = 0) in vec2 corner;  // in texels
layout(location = 1) in vec3 place;   // of the instance: x, y and depth
layout(location = 2) in uint value;   // of the instance
layout(location = 0) flat out uint color;

void main() {
    gl_Position = vec4((corner + place.xy) / vec2(32.0, 24.0) * 2.0 - 1.0, place.z, 1.0);
    color = value;
}
