"""Reads the tables by DuckDB's iceberg extension, from the metadata that the catalog names."""
from common import duckdb_with, options, show

o = options()
db = duckdb_with(o["extensions"])


def scan(name, extra=""):
    return f"iceberg_scan('{o['locations'][name]}'{extra})"


def count(sql, values=()):
    return db.execute(f"select count(*) from {sql}", values).fetchone()[0]


there = [d[0] for d in db.execute(f"select * from {scan('sales')} limit 0").description]
columns = [c for c in o["columns"] if c in there]
rows = db.execute(f"select {', '.join(columns)} from {scan('sales')}").fetchall()
show({
    "rows": [dict(zip(columns, row)) for row in rows],
    "filtered": count(f"{scan('sales')} where click_city = ?", [o["city"]]),
    "window": count(f"{scan('sales')} where timestamp >= ? and timestamp < ?", [o["from"], o["to"]]),
    "travelled": count(scan("sales", f", snapshot_from_id => {o['snapshot']}::ubigint")),
    "links": count(scan("links")),
    "customers": count(scan("customers")),
})
