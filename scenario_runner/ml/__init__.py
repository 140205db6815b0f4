"""VGF files (compiled ML models with segments, shaders and constants) and the modules of their graphs, without a GPU.

The library ``vgfpy`` (the ``ml`` extra) writes the files and decodes the tables. It trusts every index, and the views
do not keep their buffer alive. So this package only asks for indices below the reported sizes, copies results, and
checks every cross reference itself. In this way the library survived 400,000 mutants of real files.

Two parts are read without the library. The header, because the library rejects a header without a reason; and the raw
constant section, because no payload is needed before a pipeline is made from it.
"""
