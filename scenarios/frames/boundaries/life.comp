#version 450
// Conway's Game of Life on a torus: a cell lives with three living neighbours, or with two if it lived before.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) readonly buffer Before { uint before[]; };
layout(set = 0, binding = 1) writeonly buffer After { uint after[]; };

void main() {
    ivec2 size = ivec2(gl_NumWorkGroups.xy * gl_WorkGroupSize.xy);
    ivec2 here = ivec2(gl_GlobalInvocationID.xy);
    uint neighbours = 0;
    for (int y = -1; y <= 1; y++) {
        for (int x = -1; x <= 1; x++) {
            if (x != 0 || y != 0) {
                ivec2 there = (here + ivec2(x, y) + size) % size;
                neighbours += before[there.y * size.x + there.x];
            }
        }
    }
    uint alive = before[here.y * size.x + here.x];
    after[here.y * size.x + here.x] = uint(neighbours == 3 || (neighbours == 2 && alive == 1));
}
