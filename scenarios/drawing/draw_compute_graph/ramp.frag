#version 450

layout(location = 0) out vec4 color;

void main() {
    ivec2 p = ivec2(gl_FragCoord.xy);
    color = vec4(p.x, p.y, p.x * p.y, 1);
}
