#version 460
#extension GL_ARM_tensors : require
#extension GL_EXT_shader_explicit_arithmetic_types : require

// Every row times 1 / its largest absolute value, in steps of 1/64; one invocation a row.
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) readonly uniform tensorARM<float, 2> rows;
layout(set = 0, binding = 1) writeonly uniform tensorARM<float, 2> normalized;

void main() {
    uint row = gl_GlobalInvocationID.x;
    if (row >= tensorSizeARM(rows, 0)) {
        return;
    }
    float largest = 0.0;
    for (uint column = 0; column < tensorSizeARM(rows, 1); ++column) {
        float value;
        tensorReadARM(rows, uint[](row, column), value);
        largest = max(largest, abs(value));
    }
    for (uint column = 0; column < tensorSizeARM(rows, 1); ++column) {
        float value;
        tensorReadARM(rows, uint[](row, column), value);
        tensorWriteARM(normalized, uint[](row, column), value * (1.0 / 64.0) * floor(64.0 / largest));
    }
}
