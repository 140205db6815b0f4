#version 450
// Reads where nothing is, and says whether what came back is what robust access allows.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Table { uint table[]; };
layout(set = 0, binding = 1) uniform Small { uvec4 small[4]; };
layout(set = 0, binding = 2, r32ui) uniform readonly uimage2D picture;
layout(set = 0, binding = 3) readonly buffer Places { uint places[]; };
layout(set = 0, binding = 4) writeonly buffer Allowed { uint allowed[]; };
layout(set = 0, binding = 5) writeonly buffer Zeros { uint zeros[]; };

// The table holds 1000 + its index: anything else is 0 or was never in it.
bool inside(uint value, uint length) {
    return value == 0 || (value >= 1000 && value < 1000 + length);
}

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint place = places[i];
    uint from_table = table[place];
    uint from_uniform = small[place].x;
    uint from_picture = imageLoad(picture, ivec2(int(place), 1 - int(place))).x;
    uint bits = inside(from_table, 16) ? 1u : 0u;
    bits |= inside(from_uniform, 16) ? 2u : 0u;
    bits |= from_picture == 0 ? 4u : 0u;
    allowed[i] = bits;
    zeros[i] = from_table | from_uniform | from_picture;
}
