"""Evaluate and mask data that do not fit into memory or onto one machine, in blocks of rows.

`transport.py` says what an engine offers, `local.py` and `spark.py` offer it; `plan.py` and its neighbours
hold the statistics as tasks on blocks of rows, which know neither files nor clusters.
"""
