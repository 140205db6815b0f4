#version 450
// velocity += acceleration * seconds, where every body draws every other one; softened, so that none is flung away.
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { float seconds; float softening_squared; } push;
layout(set = 0, binding = 0) readonly buffer Bodies { vec4 bodies[]; }; // x, y, z, mass
layout(set = 0, binding = 1) buffer Velocities { vec4 velocities[]; };
shared vec4 tile[64];

void main() {
    uint i = gl_GlobalInvocationID.x;
    vec3 here = bodies[i].xyz;
    vec3 acceleration = vec3(0.0);
    for (uint start = 0; start < uint(bodies.length()); start += 64) {
        tile[gl_LocalInvocationID.x] = bodies[start + gl_LocalInvocationID.x];
        barrier();
        for (uint k = 0; k < 64; k++) {
            vec3 apart = tile[k].xyz - here;
            float squared = dot(apart, apart) + push.softening_squared;
            acceleration += apart * (tile[k].w / (squared * sqrt(squared)));
        }
        barrier();
    }
    velocities[i].xyz += acceleration * push.seconds;
}
