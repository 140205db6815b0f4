"""More of the text of `codes`, as in `code_table`: expectations of a suite."""

# ruff: noqa: E501

from typing import Final

TABLE: Final = """
SR-EXPECT-001 error the text of expectations cannot be read as JSON
The file is not UTF-8, is too large, is not JSON, or has a key twice.
Correct the text at the place that the message names.
docs/expectations.md

SR-EXPECT-002 error unknown key of expectations
A key that expectations, or one of their parts, do not have.
Remove or correct the key; the message lists those that there are.
docs/expectations.md

SR-EXPECT-003 error wrong value in expectations
A value that its key cannot have: of another type, a tolerance that is negative, a metric without any bound, an unknown vendor, or values without a type.
Give a value as the message says.
docs/expectations.md

SR-EXPECT-004 error expectation of no output
The name, or the file in the folder of expected files, is not that of an output. Outputs are the resources that have a `dst`, by uid, and captured frames as `frame_<id>/<uid>`.
Correct the name, remove the expectation, or give the resource a `dst`.
docs/expectations.md

SR-EXPECT-005 error output without an expectation
Something is expected of other outputs, and nothing of this one.
Let `--update` write what is missing, or give the output an entry that says `"unchecked": true`.
docs/expectations.md

SR-EXPECT-006 error expectations that contradict each other
Two parts of the expectations cannot both be meant: two sources of one output, tolerances beside a digest, a file beside the key `expect` of the scenario, bounds of which one is never reached.
Keep one of them.
docs/expectations.md

SR-EXPECT-007 error expected file that cannot be read
The file with the expected content, or with a mask, does not exist, or is not what its name says.
Correct the path, or let `--update` write the file.
docs/expectations.md

SR-EXPECT-008 error expected content that does not fit the output
The expected content, the mask or the `dtype` has another size, shape or type than the output; a mask or a border leaves no element that counts; or a file in the folder of expected files has the name of an output, and is of a kind that cannot be compared.
Give content of the type and shape that the message names.
docs/expectations.md

SR-EXPECT-009 error metric or tolerance that the output does not have
A metric of pictures, and the output is no picture, is too small or has too few channels; or a tolerance, a mask or a metric of blocks that are not decoded to numbers.
Choose another metric; let a shader copy the texels of blocks into an uncompressed image.
docs/expectations.md

SR-EXPECT-010 error package of a metric is missing
The metric is computed by a package that is not installed.
Install the package: `pip install 'scenario-runner[compare]'`.
docs/expectations.md
"""
