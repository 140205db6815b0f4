"""The rules that a scenario and its shaders must follow together, each finding with a stable code.

`finding` is what a rule gives; one module per theme holds the rules: `bindings`, `access`,
`images`, `tensors`, `block_layout`, `push_constants`, `specialization`, `entry_points`, `graphs`, `hazards`. They look
at models of the scenario and at what `spirv` reads; they open no file and no device. ``plan`` calls them for a run,
``validation`` for everything that a run would not reach.
"""
