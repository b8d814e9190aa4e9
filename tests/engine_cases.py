"""Logs of all kinds, read by an engine and by this process: the results are the same, bit by bit."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import tightrope as tr
from data.test_reading import LOGS
from log_cases import FOLDER, machine
from tightrope.data.exposure import Exposure
from tightrope.data.reading import Reading


def same_reading(far: Reading, here: Reading) -> None:
    assert far.counts == here.counts and far.counts.design == here.counts.design
    assert far.counts.batches == here.counts.batches
    assert far.counts.provenance == here.counts.provenance
    assert pickle.dumps(far.counts.observed) == pickle.dumps(here.counts.observed)
    assert (far.rows, far.dropped, far.notes) == (here.rows, here.dropped, here.notes)


def same_exposure(far: Exposure, here: Exposure) -> None:
    assert far.jumps.tolist() == here.jumps.tolist() and far.waited.tolist() == here.waited.tolist()
    assert (far.rows, far.episodes, far.censored) == (here.rows, here.episodes, here.censored)
    assert far.ends == here.ends and far.provenance == here.provenance


def read_suite(**engine: Any) -> None:
    """The logs of `tests/logs`."""
    model = machine()
    for name, words, _, _ in LOGS:
        same_reading(
            tr.read_data(FOLDER / name, model, **words, **engine), tr.read_data(FOLDER / name, model, **words)
        )


def read_in_continuous_time(folder: Path, **engine: Any) -> None:
    """Parquet of several groups and text, with numbers and with dates; wrong rows are told alike."""
    chain = tr.build_ctmc_from_rows([(0, {1: 2, 2: 0.5}), (1, {0: 1}), (2, {0: 3})])
    rows = tr.simulate_times(chain.instantiate(), 40, seed=3, time=10).table()
    pq.write_table(rows, folder / "timed.parquet", row_group_size=60)
    pyarrow.csv.write_csv(rows, folder / "timed.csv")
    moments = pa.array((np.asarray(rows["time"]) * 1e6).astype(np.int64)).cast(pa.timestamp("us"))
    pyarrow.csv.write_csv(rows.set_column(1, "time", moments), folder / "dates.csv")
    for name, words in (("timed.parquet", {}), ("timed.csv", {}), ("dates.csv", {"maps": "time: /60"})):
        log, wanted = folder / name, dict[str, Any](words)
        same_exposure(
            tr.read_exposure(log, chain, **wanted, **engine), tr.read_exposure(log, chain, **wanted)
        )
    (folder / "wrong.csv").write_text("episode,time,state\n1,0,0\n1,1,7\n")
    told = []
    for more in ({}, engine):
        try:
            tr.read_exposure(folder / "wrong.csv", chain, **more)
        except tr.InputError as error:
            told.append(str(error))
    assert len(told) == 2 and told[0] == told[1]
