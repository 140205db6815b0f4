#version 450
#extension GL_ARB_shader_clock : require
#extension GL_EXT_shader_realtime_clock : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) writeonly buffer Forwards { uint forwards[]; };

void main() {
    uint64_t subgroup_start = clockARB();
    uint64_t device_start = clockRealtimeEXT();
    uint64_t subgroup_end = clockARB();
    uint64_t device_end = clockRealtimeEXT();
    forwards[gl_GlobalInvocationID.x] = uint(subgroup_end >= subgroup_start && device_end >= device_start);
}
