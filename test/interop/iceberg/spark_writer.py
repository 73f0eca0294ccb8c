"""Does one thing to the table of clicks by Spark's Iceberg runtime and Java's JdbcCatalog, as somebody else would."""
from common import options, print_found, spark_with

o = options()
spark = spark_with(o)
name = "tributary.attribution.clicks"
two = [row[0] for row in spark.sql(f"select event_id from {name} order by timestamp, event_id limit 2").collect()]
these = "event_id in (" + ", ".join(f"'{one}'" for one in two) + ")"


def call(procedure, arguments):
    spark.sql(f"call tributary.system.{procedure}(table => 'attribution.clicks', {arguments})").collect()


def insert():
    columns = [f.name for f in spark.table(name).schema]
    values = ["concat('spark-', event_id)" if c == "event_id" else "'by-hand'" if c == "_run_id" else c for c in columns]
    spark.sql(f"insert into {name} select {', '.join(values)} from {name} where {these}")


def delete_by_files():
    spark.sql(f"alter table {name} set tblproperties ('write.delete.mode' = 'merge-on-read')")
    spark.sql(f"delete from {name} where {these}")


def roll_back():
    # To before the last snapshot that brought rows.
    found = spark.sql(f"select parent_id from {name}.snapshots where parent_id is not null order by committed_at desc limit 1")
    call("rollback_to_snapshot", f"snapshot_id => {found.collect()[0][0]}")


acts = {
    "insert": insert,
    "delete": lambda: spark.sql(f"delete from {name} where {these}"),
    "delete, merge on read": delete_by_files,
    "rewrite_data_files": lambda: call("rewrite_data_files", "options => map('rewrite-all', 'true')"),
    "expire_snapshots": lambda: call("expire_snapshots", "older_than => now(), retain_last => 1"),
    "rollback_to_snapshot": roll_back,
}
acts[o["act"]]()
print_found({"version": spark.version})
spark.stop()
