"""VGF files (compiled ML models with their segments, shaders and constants), and the modules of their graphs. No GPU.

Which reader, and why: the tables are decoded with ``vgfpy``, the library that also writes these files (the ``ml``
extra). It trusts every index that it is given and its views do not keep their buffer alive, so this package asks it
only for indices below the sizes that it reports, copies what it returns, and checks every cross reference of the file
itself. Used that way it stood 400,000 mutants of real files without a crash. Two parts are read here: the header,
because the library refuses one without saying why, and the raw constant section, because its payload is not read before
a pipeline is made from it.
"""
