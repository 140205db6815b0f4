#version 450
#extension GL_ARB_shader_clock : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };

// One bit of a counter of time: 0 in half of the runs.
void main() { data[0] = uint(clockARB() >> 11) & 1u; }
