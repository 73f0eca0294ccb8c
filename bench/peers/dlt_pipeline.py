"""dlt's REST API source on GET /events, configured as its documentation advises.

https://dlthub.com/docs/dlt-ecosystem/verified-sources/rest_api/basic
https://dlthub.com/docs/general-usage/incremental/cursor
"""

import os

import dlt
from dlt.sources.rest_api import RESTAPIConfig, rest_api_source

LAG_SECONDS = float(os.environ["LAG_SECONDS"])
TARGET, PLACE = os.environ["TARGET"], os.environ["PLACE"]

config: RESTAPIConfig = {
    "client": {
        "base_url": os.environ["BASE_URL"],
        "auth": {"type": "bearer", "token": os.environ["API_KEY"]},
        # The service names no total: the paginator ends at an empty page, which a short page is not.
        "paginator": {"type": "page_number", "base_page": 1, "page_param": "page", "total_path": None},
    },
    "resources": [
        {
            "name": "leads",
            "primary_key": "eventId",
            "write_disposition": "merge",
            "endpoint": {
                "path": "events",
                "data_selector": "$",
                "params": {
                    "event": "leads",
                    "limit": 1000,
                    "sortBy": "timestamp",
                    "sortOrder": "asc",
                    "timezone": "UTC",
                    "start": "{incremental.start_value}",
                },
                "incremental": {
                    "cursor_path": "timestamp",
                    "initial_value": os.environ["SINCE"],
                    "lag": LAG_SECONDS,
                },
            },
        }
    ],
}

# Postgres is loaded from CSV by COPY; dlt's default of INSERT cost as much CPU here and was no faster.
FILE_FORMATS = {"postgres": "csv", "parquet": "parquet", "delta": "parquet"}

# One level: objects become columns and lists stay JSON, as in Tributary's tables, instead of a table for each list.
source = rest_api_source(config, max_table_nesting=1)
if TARGET == "delta":
    # Plain Parquet files can only be appended to; merging on files needs a table format.
    source.leads.apply_hints(table_format="delta", write_disposition={"disposition": "merge", "strategy": "upsert"})

is_database = TARGET == "postgres"
destination = dlt.destinations.postgres(PLACE) if is_database else dlt.destinations.filesystem(f"file://{PLACE}")
pipeline = dlt.pipeline("peers", destination=destination, dataset_name="peers")
pipeline.run(source, loader_file_format=FILE_FORMATS[TARGET])
