#include "rounding.hlsli"

// register() gives the binding, the space gives the set.
StructuredBuffer<float> samples : register(t0);
RWStructuredBuffer<uint> counts : register(u1);
RWStructuredBuffer<float16_t> halves : register(u2, space1);

struct Push
{
    float scale;
    uint count;
};
[[vk::push_constant]] Push push;

[[vk::constant_id(0)]] const uint bins = 4;

[numthreads(64, 1, 1)]
void fill(uint3 id : SV_DispatchThreadID)
{
    if (id.x >= push.count)
        return;
    float scaled = samples[id.x] * push.scale;
    InterlockedAdd(counts[min(nearest(scaled), bins - 1)], 1);
    halves[id.x] = (float16_t)scaled;
}
