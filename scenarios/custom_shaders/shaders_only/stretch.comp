#version 450

// Numbers between the extremes become numbers between two limits.

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Numbers { float numbers[]; };
layout(set = 0, binding = 1) readonly buffer Extremes { float extremes[]; };
layout(set = 0, binding = 2) writeonly buffer Stretched { float stretched[]; };
layout(push_constant) uniform Limits { float low; float high; };

void main() {
    uint at = gl_GlobalInvocationID.x;
    if (at < stretched.length()) {
        float part = (numbers[at] - extremes[0]) / (extremes[1] - extremes[0]);
        stretched[at] = low + part * (high - low);
    }
}
