"""A suite on several hosts, through Dask: shards of items, each run by a supervisor on its host."""
