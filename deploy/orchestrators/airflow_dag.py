"""Airflow 3: sync every hour, and let the tasks behind it run only when the hour is complete.

Needs the command `tributary` on the worker, and TRIBUTARY_CONFIG with the path of its config.
"""

import json
import os
import subprocess
from datetime import datetime, timedelta

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.sdk import dag, get_current_context, task


def tributary(*args):
    config = os.environ["TRIBUTARY_CONFIG"]
    ran = subprocess.run(["tributary", *args, "--config", config, "--json"], capture_output=True, text=True)
    if ran.returncode == 0:
        return json.loads(ran.stdout)
    said = ran.stdout.strip() or ran.stderr.strip()
    if ran.returncode == 4:  # Incomplete: everything that was read is kept, and the next try goes on from there.
        raise AirflowException(said)
    raise AirflowFailException(said)  # 2 and 3 need a person: trying again would not help.


@dag(
    schedule="@hourly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=5)},
)
def tributary_sync():
    @task
    def sync():
        return tributary("sync")

    @task.sensor(poke_interval=60, timeout=3600, mode="reschedule")
    def is_complete():
        """True when every stream is complete up to the end of this run's hour."""
        context = get_current_context()
        end = context.get("data_interval_end") or context["dag_run"].run_after
        streams = tributary("status")["streams"]
        through = [stream["completeThrough"] for stream in streams]
        return bool(through) and all(at is not None and datetime.fromisoformat(at) >= end for at in through)

    @task
    def report():
        """What reads the tables goes here."""

    sync() >> is_complete() >> report()


tributary_sync()
