"""The codes of suites: lists, folders, journals. See `codes` for what the lines of an entry are."""

from typing import Final

TABLE: Final = """
SR-SUITE-001 error invalid regular expression in a list
A line of a list of skips, flakes or included tests is not a regular expression. The line is ignored.
Correct the pattern; a character that has a meaning there, such as ( or +, is written with a backslash before it.
docs/suites.md

SR-SUITE-002 error invalid line of a baseline
A line of a baseline has no status, or one that does not exist.
Write `name,status`; the statuses are in docs/suites.md.
docs/suites.md

SR-SUITE-003 error name given twice in baselines
Two lines of the baselines are about the same item, so that it is not clear what is expected of it.
Remove one of the lines.
docs/suites.md

SR-SUITE-004 warning entry of a list matches nothing
An entry of a baseline or a pattern of a list applies to no item of the suite.
Remove the entry, or correct its spelling: names are paths relative to --root.
docs/suites.md

SR-SUITE-005 error list that includes itself
A line of a list that ends in .txt includes another list, and so on back to the first one.
Remove one of the lines.
docs/suites.md

SR-SUITE-006 error part of a suite that cannot be read
A list, a folder or a file of a suite does not exist or cannot be read. The other items of the suite run.
Check the path and its permissions.
docs/suites.md

SR-SUITE-007 warning links in a circle
A link in a folder of a suite leads back to a folder above it. It is not followed.
Remove the link, or name the folders to search one by one.
docs/suites.md

SR-SUITE-008 error name that lists and reports cannot hold
The name of a file or folder has control characters, or bytes that are not UTF-8. The item does not run.
Rename the file.
docs/suites.md

SR-SUITE-009 error no scenario found
What was given to `scenario-runner test` has no scenario.
Name scenario files, or folders with .json files that have "commands" or "resources".
docs/suites.md

SR-SUITE-010 error journal in use
Another suite writes its results into the same folder at this moment.
Wait until it has ended, or give each suite a folder of its own; `scenario-runner report` merges their journals.
docs/suites.md

SR-SUITE-011 error file that is no journal of this version
The file is not a journal of results, or another version of the program wrote it in a form that this one cannot read.
Name a journal.jsonl that `scenario-runner test --results` wrote, or use the version that wrote it.
docs/suites.md

SR-SUITE-012 warning damaged line of a journal
A line of a journal is none that a suite writes, often the last one of a run that was killed. It is ignored.
Run the suite again with --resume, which runs what has no result.
docs/suites.md

SR-SUITE-013 warning journals that contradict each other
Two journals have different verdicts on the same item. That of the journal named last counts.
Run the item again, and look for differences of the devices and drivers.
docs/suites.md

SR-SUITE-014 error results of a suite that did not end
A journal does not have the results of all items: its suite was killed, interrupted or stopped, or still runs.
Run the suite again with --resume, which runs what has no result.
docs/suites.md
"""
