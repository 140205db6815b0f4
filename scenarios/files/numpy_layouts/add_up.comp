#version 450
layout(local_size_x = 8, local_size_y = 6) in;
layout(set = 0, binding = 0) readonly buffer Plain { int plain[]; };
layout(set = 0, binding = 1) readonly buffer Swapped { int swapped[]; };
layout(set = 0, binding = 2) readonly buffer Fortran { int fortran[]; };
layout(set = 0, binding = 3) writeonly buffer Sum { int sum[]; };

void main() {
    uint i = gl_GlobalInvocationID.y * 8 + gl_GlobalInvocationID.x;
    sum[i] = plain[i] + 1000 * swapped[i] + 1000000 * fortran[i];
}
