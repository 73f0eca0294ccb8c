"""Reads one table again and again until it is told to stop. Every answer must agree with itself, and none may be older than the last."""
import os, time
from common import options, print_found

o = options()
name = f"{o['namespace']}.sales"


def by_pyiceberg():
    from pyiceberg.catalog.sql import SqlCatalog
    catalog = SqlCatalog("tributary", uri=o["sqlalchemy"], warehouse=o["warehouse"])

    def read(hold):
        table = catalog.load_table(name)
        time.sleep(hold)
        rows = table.scan(selected_fields=("event_id", "sale_amount")).to_arrow().to_pylist()
        totals = [row["sale_amount"] for row in rows if row["event_id"] == "total"]
        return len(rows), len({row["event_id"] for row in rows}), totals

    return read


def by_duckdb():
    import psycopg2
    from common import duckdb_with
    db = duckdb_with(o["extensions"])
    state = psycopg2.connect(o["postgres"])
    state.autocommit = True

    def read(hold):
        with state.cursor() as cursor:
            cursor.execute(
                "select metadata_location from public.iceberg_tables where table_namespace = %s and table_name = 'sales'",
                [o["namespace"]],
            )
            location = cursor.fetchone()[0]
        time.sleep(hold)
        return db.execute(
            "select count(*), count(distinct event_id), list(sale_amount) filter (event_id = 'total') "
            f"from iceberg_scan('{location}')"
        ).fetchone()

    return read


def by_spark():
    from common import spark_with
    spark = spark_with(o)

    def read(hold):
        frame = spark.sql(
            "select count(*), count(distinct event_id), collect_list(case when event_id = 'total' then sale_amount end) "
            f"from tributary.{name}"
        )
        time.sleep(hold)
        return tuple(frame.collect()[0])

    return read


read = {"pyiceberg": by_pyiceberg, "DuckDB": by_duckdb, "Spark": by_spark}[o["reader"]]()
reads, wrong, failed, before = 0, [], [], 0
while not os.path.exists(o["stop"]):
    reads += 1
    try:
        # Some queries take their time: between the first look at a table and its last file others commit, join and expire.
        count, distinct, totals = read(o["hold"] if reads % 5 == 0 else 0)
    except Exception as error:
        failed.append(f"{type(error).__name__}: {error}")
        continue
    # The writer changes `total` in the same commit that adds rows.
    if distinct != count or totals != [count] or count < before:
        wrong.append(f"{count} rows, {distinct} ids, total {totals}, {before} before")
    before = count
print_found({"reads": reads, "wrong": wrong[:3], "failed": failed[:3], "rows": before})
