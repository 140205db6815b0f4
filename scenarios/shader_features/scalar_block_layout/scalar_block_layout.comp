#version 450
#extension GL_EXT_scalar_block_layout : require

layout(local_size_x = 64) in;
struct Particle {
    float mass;
    vec3 position;
    vec3 velocity;
};
layout(set = 0, binding = 0, scalar) readonly buffer Particles { Particle particles[]; };
layout(set = 0, binding = 1, scalar) writeonly buffer Momenta { vec3 momenta[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    momenta[i] = particles[i].mass * particles[i].velocity;
}
