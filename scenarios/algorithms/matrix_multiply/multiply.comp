#version 450
// C = A B, one workgroup for each tile of 16 x 16 items of C; tiles of A and B go through shared memory.
layout(local_size_x = 16, local_size_y = 16) in;
layout(push_constant) uniform Push { uint rows; uint inner; uint columns; } size;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
shared float tile_a[16][16];
shared float tile_b[16][16];

void main() {
    uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;
    uint column = gl_GlobalInvocationID.x, row = gl_GlobalInvocationID.y;
    float sum = 0.0;
    for (uint start = 0; start < size.inner; start += 16) {
        bool a_inside = row < size.rows && start + x < size.inner;
        bool b_inside = column < size.columns && start + y < size.inner;
        tile_a[y][x] = a_inside ? a[row * size.inner + start + x] : 0.0;
        tile_b[y][x] = b_inside ? b[(start + y) * size.columns + column] : 0.0;
        barrier();
        for (uint k = 0; k < 16; k++) {
            sum += tile_a[y][k] * tile_b[k][x];
        }
        barrier();
    }
    if (row < size.rows && column < size.columns) {
        c[row * size.columns + column] = sum;
    }
}
