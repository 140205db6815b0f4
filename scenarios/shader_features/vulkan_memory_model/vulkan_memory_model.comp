#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1) buffer Flags { uint finished; };
layout(set = 0, binding = 2) nonprivate buffer Sums { uint sums[]; };
layout(set = 0, binding = 3) buffer Total { uint total; };

void main() {
    if (gl_LocalInvocationIndex == 0) {
        uint sum = 0;
        for (uint k = 0; k < 64; ++k) {
            sum += a[gl_WorkGroupID.x * 64 + k];
        }
        sums[gl_WorkGroupID.x] = sum;
        uint before = atomicAdd(finished, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer,
            gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible);
        if (before == gl_NumWorkGroups.x - 1) {
            uint all = 0;
            for (uint k = 0; k < gl_NumWorkGroups.x; ++k) {
                all += sums[k];
            }
            total = all;
        }
    }
}
