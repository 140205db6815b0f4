#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"  // in the folder of this file
#include "horner.glsl"   // in a folder of include_dirs

layout(local_size_x = LOCAL_SIZE) in;

void main() {
    uint i = gl_GlobalInvocationID.x;
    float value = horner(x[i]);
#ifdef NEGATED
    value = -value;
#endif
    y[i] = value;
}
