"""The rules that a scenario and its shaders must follow together; each finding has a stable code.

The rules look at models of the scenario and at what `spirv` reads; they open no file and no device. ``plan`` applies
them for a run, ``validation`` adds those that a run does not reach.
"""
