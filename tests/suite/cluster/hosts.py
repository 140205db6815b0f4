"""A cluster of Dask for tests: each worker is a process with a folder and a cache of its own.

``python hosts.py FOLDER COUNT [NAME=VALUE…]`` prints the address of the scheduler and the process ids of the workers as
JSON, and ends when its standard input does. The values are environment variables of the workers.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> None:
    from distributed import Client, Nanny, Scheduler, SpecCluster

    folder, count, *variables = sys.argv[1:]
    environment = dict(each.split("=", 1) for each in variables)
    workers = {}
    for number in range(int(count)):
        own = Path(folder, f"host-{number}")
        own.mkdir()
        options = {
            "nthreads": 1,
            "local_directory": str(own),
            "env": {**environment, "SCENARIO_RUNNER_CACHE": str(own / "cache"), "TMPDIR": str(own)},
            "dashboard": False,
        }
        workers[number] = {"cls": Nanny, "options": options}
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "host": "127.0.0.1", "port": 0}}
    with (
        SpecCluster(workers, scheduler, silence_logs=50) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        processes = list(client.run(os.getpid).values())
        print(json.dumps([cluster.scheduler_address, processes]), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
