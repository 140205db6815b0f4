#version 450
// position += velocity * seconds
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { float seconds; float softening_squared; } push;
layout(set = 0, binding = 0) buffer Bodies { vec4 bodies[]; };
layout(set = 0, binding = 1) readonly buffer Velocities { vec4 velocities[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    bodies[i].xyz += velocities[i].xyz * push.seconds;
}
