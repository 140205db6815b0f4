"""Suites of scenarios: items are found, run in workers, judged, kept in a journal and reported.

::

    discovery ──Item──▶ suite_run ────▶ suite_workers ──▶ worker_task ──▶ evaluation
    combinations        lists, limits   the pool          in a worker     expectations/, evidence
                                             │
                                             └──Outcome──▶ verdicts_and_retries ──Result──▶ journal ──▶ reports/

`outcomes` has the records. With --cluster, `cluster_workers` replaces `suite_workers`, and `cluster_host` runs items.
"""
