#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };

// Work for days: no compiler can shorten it, and no driver sees at once that it does not end.
void main() {
    for (uint i = 0u; i < data[0] * 60000u; i++) data[3] = data[3] * 3u + i;
}
