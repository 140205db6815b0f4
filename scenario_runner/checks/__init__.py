"""Rules for a scenario together with its shaders. Each finding has a stable code.

The rules compare models of the scenario with parsed SPIR-V modules. They open no file and no device. ``plan`` applies
the rules that a run needs, and ``validation`` adds the others. Rules for one entry of the file are in ``scenario``.
"""
