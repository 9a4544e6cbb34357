"""Devices of one recording that share collectives, by one clock: what each waited for the last of them, and what moved the data."""

from __future__ import annotations

import polars as pl

from stepscope.trace.frames import conform

OPERATION = ("name", "group", "group_size", "dtype")
MET = {"name": pl.String, "group": pl.String, "group_size": pl.Int32, "dtype": pl.String} | {
    "wait_ns": pl.Int64,
    "transfer_ns": pl.Int64,
}


def waits_between_devices(calls: pl.DataFrame) -> pl.DataFrame:
    """By operation wait_ns, summed over devices, and transfer_ns, of the device that came last.

    The n-th call of one device is the n-th of every other. Operations whose calls do not overlap like that are left out: they are of
    other groups, or some of their calls were not recorded.
    """
    mine = calls.filter(~pl.col("on_host")).select(
        *OPERATION, "device", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    if mine["device"].n_unique() < 2:
        return pl.DataFrame(schema=MET)
    numbered = mine.sort("start_ns").with_columns(number=pl.int_range(pl.len()).over(*OPERATION, "device"))
    last = pl.col("start_ns").max()
    met = numbered.group_by(*OPERATION, "number").agg(
        devices=pl.len(),
        overlap=pl.col("end_ns").min() > last,
        wait_ns=(last - pl.col("start_ns")).sum(),
        transfer_ns=pl.col("end_ns").max() - last,
    )
    is_shared = (pl.col("devices").min() > 1) & (pl.col("devices").n_unique() == 1) & pl.col("overlap").all()
    found = met.group_by(*OPERATION).agg(pl.col("wait_ns", "transfer_ns").sum(), shared=is_shared)
    return conform(found.filter("shared"), MET)
