#version 450
// Follows each vector of an optical flow, away from the edges: which texel of the next picture is there?
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) uniform sampler2D flow;
layout(set = 0, binding = 1) uniform sampler2D next_picture;
layout(set = 0, binding = 2) writeonly buffer Motion { vec2 motion[]; };
layout(set = 0, binding = 3) writeonly buffer Found { uint found[]; };

const int margin = 16;

void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    uint index = p.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) + p.x;
    ivec2 texel = p + margin;
    vec2 vector = texelFetch(flow, texel, 0).xy;
    motion[index] = vector;
    found[index] = uint(texelFetch(next_picture, texel + ivec2(round(vector)), 0).x * 255.0 + 0.5);
}
