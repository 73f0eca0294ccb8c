"""Does one thing to the table of clicks by pyiceberg's SqlCatalog, as somebody else would; then prints what the table holds."""
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import In
from pyiceberg.types import StringType
from common import options, print_found

o = options()
catalog = SqlCatalog("tributary", uri=o["sqlalchemy"], warehouse=o["warehouse"])
table = catalog.load_table("attribution.clicks")


def two():
    """Two of the oldest rows."""
    rows = table.scan().to_arrow().sort_by("timestamp")
    return rows.slice(0, 2)


def changed(rows, column, value):
    at = rows.schema.get_field_index(column)
    return rows.set_column(at, rows.schema.field(at), pa.array([value] * rows.num_rows, rows.schema.field(at).type))


def ids(rows):
    return In("event_id", rows["event_id"].to_pylist())


acts = {
    "look": lambda: None,
    "append": lambda: table.append(two()),
    "append of its own": lambda: table.append(changed(two(), "_run_id", "by-hand")),
    "delete": lambda: table.delete(ids(two())),
    "overwrite": lambda: table.overwrite(changed(two(), "click_country", "XX"), ids(two())),
    "new column": lambda: table.update_schema().add_column("note", StringType()).commit(),
    "dropped column": lambda: table.update_schema(allow_incompatible_changes=True).delete_column("click_city").commit(),
    "renamed column": lambda: table.update_schema().rename_column("click_city", "town").commit(),
    "expired snapshots": lambda: table.maintenance.expire_snapshots().by_ids(
        [s.snapshot_id for s in table.snapshots() if s.snapshot_id != table.current_snapshot().snapshot_id]
    ).commit(),
}
acts[o["act"]]()
rows = catalog.load_table("attribution.clicks").scan().to_arrow()
print_found({
    "rows": rows.num_rows,
    "ids": len(set(rows["event_id"].to_pylist())),
    "cities": sum(c is not None for c in rows["click_city"].to_pylist()) if "click_city" in rows.column_names else 0,
    "odd": sum(c == "XX" for c in rows["click_country"].to_pylist()),
})
