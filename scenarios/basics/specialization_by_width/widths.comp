#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 16) in;
layout(constant_id = 0) const int8_t small = int8_t(0);
layout(constant_id = 1) const uint16_t medium = uint16_t(0);
layout(constant_id = 2) const int64_t large = 0L;
layout(constant_id = 3) const double third = 0.0lf;
layout(set = 0, binding = 0) writeonly buffer Integers { int64_t integers[]; };
layout(set = 0, binding = 1) writeonly buffer Reals { double reals[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    integers[i] = large + int64_t(i) * int64_t(medium) + int64_t(small);
    reals[i] = third * double(i);
}
