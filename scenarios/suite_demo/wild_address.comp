#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require

layout(local_size_x = 1) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Somewhere { uint value; };
layout(set = 0, binding = 0) buffer Data { uint data[]; };

// Writes to an address that no buffer has.
void main() {
    Somewhere somewhere = Somewhere(uvec2(data[0] * 64u, data[1] * 16u));
    somewhere.value = 7u;
    data[2] = somewhere.value;
}
