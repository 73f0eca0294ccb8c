"""Reads the tables by pyiceberg's SqlCatalog and prints what it found."""
import json, sys
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, LessThan
from common import options, show

o = options()
catalog = SqlCatalog("tributary", uri=o["sqlalchemy"], warehouse=o["warehouse"])


def table(name):
    return catalog.load_table(f"{o['namespace']}.{name}")


def rows(scan):
    return scan.to_arrow().to_pylist()


sales = table("sales")
columns = tuple(c for c in o["columns"] if c in [f.name for f in sales.schema().fields])
day = And(GreaterThanOrEqual("timestamp", o["from"]), LessThan("timestamp", o["to"]))
show({
    "tables": sorted(t[1] for t in catalog.list_tables(o["namespace"])),
    "rows": rows(sales.scan(selected_fields=columns)),
    "filtered": len(rows(sales.scan(EqualTo("click_city", o["city"]), selected_fields=("event_id",)))),
    "window": len(rows(sales.scan(day, selected_fields=("event_id",)))),
    "travelled": len(rows(sales.scan(snapshot_id=o["snapshot"], selected_fields=("event_id",)))),
    "proven": sales.snapshot_by_id(o["snapshot"]).summary["tributary.complete-through"],
    "links": len(rows(table("links").scan())),
    "customers": len(rows(table("customers").scan())),
    "partitions": len(sales.inspect.partitions()),
    "comment": sales.schema().find_field("event_id").doc,
})
