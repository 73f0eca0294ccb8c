"""Dagster: the tables as an asset that a running worker brings up to date, by its HTTP API.

Needs TRIBUTARY_URL, such as http://tributary:8080, and TRIBUTARY_TOKEN with the role `operator`.
"""

import json
import os
import urllib.error
import urllib.request

import dagster as dg


def call(method, path, body=None):
    request = urllib.request.Request(
        os.environ["TRIBUTARY_URL"].rstrip("/") + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"authorization": f"Bearer {os.environ['TRIBUTARY_TOKEN']}", "content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=90) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        told = json.load(error)["error"]
        raise dg.Failure(f"{told['message']} {told.get('next') or ''}", allow_retries=error.code >= 500) from error


@dg.asset(retry_policy=dg.RetryPolicy(max_retries=3, delay=300), group_name="attribution")
def attribution_events():
    """Clicks, leads and sales, with how far each of them is complete."""
    sync = call("POST", "/api/sync", {"wait": 60})
    while not sync["done"]:
        sync = call("GET", f"/api/sync/{urllib.request.quote(sync['id'], safe='')}?wait=60")
    faults = [one for one in sync["streams"] if one["state"] != "done"]
    if faults:
        told = "\n".join(f"{one['source']}/{one['stream']}: {one['message']}" for one in faults)
        # What is incomplete goes on from there at the next try. What is refused needs a person.
        raise dg.Failure(told, allow_retries=all(one["state"] == "incomplete" for one in faults))
    streams = call("GET", "/api/overview")["streams"]
    complete = {f"{one['source']}_{one['stream']}": sink["completeThrough"] for one in streams for sink in one["sinks"]}
    return dg.MaterializeResult(metadata={name: str(at) for name, at in complete.items()})


hourly = dg.ScheduleDefinition(name="hourly", target=[attribution_events], cron_schedule="0 * * * *")

defs = dg.Definitions(assets=[attribution_events], schedules=[hourly])
