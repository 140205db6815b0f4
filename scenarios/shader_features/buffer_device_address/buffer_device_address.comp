#version 450
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

// A scenario has no way to give a shader the address of a buffer, so nothing is read through these.
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Particle {
    vec4 position;
    vec3 velocity;
    float mass;
};
layout(set = 0, binding = 0) readonly buffer Addresses { uint64_t addresses[]; };
layout(set = 0, binding = 1) writeonly buffer Moved { uint64_t moved[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    Particle particle = Particle(addresses[i]);
    moved[i] = uint64_t(particle + 3);
}
