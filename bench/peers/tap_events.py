"""A Singer tap for GET /events, written as the Singer SDK's template and documentation advise.

https://sdk.meltano.com/en/latest/dev_guide.html
https://sdk.meltano.com/en/latest/code_samples.html
"""

from __future__ import annotations

import datetime
import typing as t

from singer_sdk import RESTStream, Tap
from singer_sdk import typing as th
from singer_sdk.authenticators import BearerTokenAuthenticator
from singer_sdk.pagination import PageNumberPaginator

ANY_OBJECT = th.ObjectType(additional_properties=True)
ALIASES = ("click_id", "link_id", "domain", "key", "url", "continent", "country", "city", "device", "browser", "os", "ip")


class LeadsStream(RESTStream[int]):
    """One page after the other, oldest first, until an empty one."""

    name = "leads"
    path = "/events"
    primary_keys = ("eventId",)
    replication_key = "timestamp"
    # Reading again what came before the bookmark is not sorted by the bookmark: the SDK would stop.
    is_sorted = False
    schema = th.PropertiesList(
        th.Property("event", th.StringType),
        th.Property("timestamp", th.DateTimeType, required=True),
        th.Property("eventId", th.StringType, required=True),
        th.Property("eventName", th.StringType),
        th.Property("metadata", ANY_OBJECT),
        th.Property("click", ANY_OBJECT),
        th.Property("link", ANY_OBJECT),
        th.Property("customer", ANY_OBJECT),
        th.Property("qr", th.IntegerType),
        *(th.Property(name, th.StringType) for name in ALIASES),
    ).to_dict()

    @property
    def url_base(self) -> str:
        return self.config["base_url"]

    @property
    def authenticator(self) -> BearerTokenAuthenticator:
        return BearerTokenAuthenticator(token=self.config["api_key"])

    def get_new_paginator(self) -> PageNumberPaginator:
        return PageNumberPaginator(start_value=1)

    def get_url_params(self, context: dict | None, next_page_token: int | None) -> dict[str, t.Any]:
        lookback = datetime.timedelta(seconds=self.config["lookback_seconds"])
        start = self.get_starting_timestamp(context)
        return {
            "event": "leads",
            "limit": 1000,
            "sortBy": "timestamp",
            "sortOrder": "asc",
            "timezone": "UTC",
            "page": next_page_token,
            "start": (start - lookback).isoformat(),
        }

    def backoff_wait_generator(self) -> t.Generator[float, None, None]:
        """Waits as long as the service asks for: the SDK's own sample."""
        return self.backoff_runtime(value=lambda error: int(error.response.headers.get("Retry-After", 0)))


class TapEvents(Tap):
    """The tap."""

    name = "tap-events"
    config_jsonschema = th.PropertiesList(
        th.Property("base_url", th.StringType, required=True),
        th.Property("api_key", th.StringType, required=True, secret=True),
        th.Property("start_date", th.DateTimeType, required=True),
        th.Property("lookback_seconds", th.IntegerType, default=0),
    ).to_dict()

    def discover_streams(self) -> list[LeadsStream]:
        return [LeadsStream(self)]


if __name__ == "__main__":
    TapEvents.cli()
