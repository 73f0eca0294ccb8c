"""Reads the tables by Spark's Iceberg runtime and Java's JdbcCatalog."""
from common import options, show, spark_with

o = options()
spark = spark_with(o)
name = f"tributary.{o['namespace']}"


def count(sql):
    return spark.sql(f"select count(*) from {sql}").collect()[0][0]


there = [f.name for f in spark.table(f"{name}.sales").schema]
columns = [c for c in o["columns"] if c in there]
# As text: Python's own times have no room for the year 9999 in every zone.
cast = [f"unix_micros({c}) as {c}" if c in o["times"] else c for c in columns]
rows = [r.asDict() for r in spark.sql(f"select {', '.join(cast)} from {name}.sales").collect()]
for row in rows:
    for c in o["times"]:
        if c in row and row[c] is not None:
            row[c] = f"{row[c]} us"
show({
    "tables": sorted(r[1] for r in spark.sql(f"show tables in {name}").collect()),
    "rows": rows,
    "filtered": count(f"{name}.sales where click_city = '{o['city']}'"),
    "window": count(f"{name}.sales where timestamp >= timestamp '{o['from']}' and timestamp < timestamp '{o['to']}'"),
    "travelled": count(f"{name}.sales version as of {o['snapshot']}"),
    "proven": spark.sql(f"select summary['tributary.complete-through'] from {name}.sales.snapshots where snapshot_id = {o['snapshot']}").collect()[0][0],
    "links": count(f"{name}.links"),
    "customers": count(f"{name}.customers"),
    "partitions": count(f"{name}.sales.partitions"),
})
spark.stop()
