#version 450
layout(local_size_x_id = 0) in;
layout(binding = 0) buffer Numbers { TYPE numbers[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * gl_WorkGroupSize.x + gl_GlobalInvocationID.x;
    numbers[i] *= numbers[i];
}
