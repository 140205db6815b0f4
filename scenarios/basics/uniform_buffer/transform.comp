#version 450
layout(local_size_x = 16) in;
// The scenario binds a plain buffer; that the descriptor is a uniform buffer is taken from here.
layout(std140, set = 0, binding = 0) uniform Transform {
    mat4 matrix;      // bytes 0 to 63, column by column
    vec3 offset;      // bytes 64 to 75
    float scale;      // bytes 76 to 79
    float weights[4]; // bytes 80 to 143: each element of an array takes 16
};
layout(set = 1, binding = 0) readonly buffer Points { vec4 points[]; };
layout(set = 1, binding = 1) writeonly buffer Moved { vec4 moved[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    vec4 point = matrix * points[i];
    moved[i] = vec4(scale * point.xyz + offset, weights[i % 4] * point.w);
}
