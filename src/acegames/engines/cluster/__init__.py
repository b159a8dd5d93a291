"""A solve in blocks, as tasks on a cluster: see `engine`."""
