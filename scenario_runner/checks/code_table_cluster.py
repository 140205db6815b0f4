"""The codes of suites on several hosts. See `codes` for what the lines of an entry are."""

from typing import Final

TABLE: Final = """
SR-CLUSTER-001 error package for clusters missing
`--cluster` needs Dask's package `distributed`, which this Python does not have.
Install it: `pip install 'scenario-runner[cluster]'`, on each host.
docs/suites.md

SR-CLUSTER-002 error no scheduler at this address
The value of `--cluster` is no address, or no scheduler of Dask answers there.
Give the address that `dask scheduler` prints, such as tcp://host:8786, or local:N.
docs/suites.md

SR-CLUSTER-003 error no host of the cluster can run the suite
The cluster has no workers, or none of them can run scenarios.
Start workers on hosts that have the same version of this program: `dask worker SCHEDULER --nworkers 1 --nthreads 1`.
docs/suites.md

SR-CLUSTER-004 warning host of a cluster is not used
A host lacks this program or a device, has another version of the program, or failed several times in a row.
Install the same version of this program there; `scenario-runner doctor` on that host says what else it lacks.
docs/suites.md

SR-CLUSTER-005 error absolute path that another host lacks
A scenario names a file by an absolute path, and the host that was to run it has no such file with the same content.
Name the file relative to the scenario: such files are sent to the host.
docs/suites.md

SR-CLUSTER-006 error file that a host could not get
A file of a scenario changed while the suite ran.
Run the suite again with --resume.
docs/suites.md

SR-CLUSTER-007 error scheduler of a cluster lost
The scheduler of Dask has ended, or cannot be reached any more.
Run the suite again with --resume, on a cluster or without --cluster: the results that came are kept.
docs/suites.md

SR-CLUSTER-008 error host of a cluster cannot keep files
A host cannot write the files of scenarios: its disk is full, or a folder is not writable.
Make room where its cache (SCENARIO_RUNNER_CACHE) and its temporary files (TMPDIR) are.
docs/suites.md
"""
