"""Answers questions about a table of the lake by one reader: python lake_reader.py READER, questions as JSON on standard input."""
import glob, json, os, sys

reader = sys.argv[1]
asked = json.loads(sys.stdin.read())
folder = asked["folder"]
files = sorted(glob.glob(os.path.join(folder, "**", "*.parquet"), recursive=True))


def literal(value, kind, stamp):
    if kind == "timestamp":
        return stamp(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return json.dumps(value)


def sql_of(question, stamp, micros):
    """One SQL for the three that speak it; only instants differ."""
    column = f'"{question["column"]}"'
    what = {
        "count": "count(*)",
        "nulls": f"count(*) - count({column})",
        "distinct": f"count(distinct {column})",
        "sum": f"sum({column})",
        "min": f"min({column})",
        "max": f"max({column})",
    }[question["what"]]
    if question["what"] in ("min", "max") and question["kind"] == "timestamp":
        what = micros(what)
    conditions = [
        f'"{name}" is null' if op == "is null" else f'"{name}" {op} {literal(value, kind, stamp)}'
        for name, kind, op, value in question["where"]
    ]
    return f"select {what} from t" + (" where " + " and ".join(conditions) if conditions else "")


def iso(value):
    import datetime
    at = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=value)
    return at.strftime("%Y-%m-%d %H:%M:%S.%f")


def duckdb():
    import duckdb
    db = duckdb.connect()
    db.execute("set timezone = 'UTC'")
    db.execute(f"create view t as select * from read_parquet('{folder}/**/*.parquet', hive_partitioning = true, union_by_name = true)")
    return lambda q: db.execute(sql_of(q, lambda v: f"timestamptz '{iso(v)}+00'", lambda e: f"epoch_us({e})")).fetchone()[0]


def datafusion():
    import datafusion
    import pyarrow as pa
    context = datafusion.SessionContext()
    context.register_parquet("t", folder, table_partition_cols=[("date", pa.string())])
    stamp = lambda v: f"arrow_cast({v}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
    micros = lambda e: f"arrow_cast({e}, 'Int64')"
    return lambda q: context.sql(sql_of(q, stamp, micros)).to_pydict().popitem()[1][0]


def chdb():
    import chdb
    # Its type JSON takes objects only, and ours may be lists: they are read as text.
    settings = "schema_inference_mode='union', use_hive_partitioning=1, input_format_parquet_enable_json_parsing=0"
    table = f"(select * from file('{folder}/**/*.parquet', Parquet) settings {settings})"
    stamp = lambda v: f"fromUnixTimestamp64Micro({v}, 'UTC')"
    def answer(q):
        sql = sql_of(q, stamp, lambda e: f"toUnixTimestamp64Micro({e})").replace(" from t", f" from {table} t")
        return json.loads(str(chdb.query(f"select * from ({sql}) settings output_format_json_quote_64bit_integers=0", "JSONCompactEachRow")))[0]
    return answer


def spark():
    from pyspark.sql import SparkSession
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = session.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    # Standard SQL: names between double quotes, no escapes in texts.
    for key in ("spark.sql.ansi.enabled", "spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.parser.escapedStringLiterals"):
        session = session.config(key, "true")
    spark = session.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.read.option("mergeSchema", "true").parquet(folder).createOrReplaceTempView("t")
    return lambda q: spark.sql(sql_of(q, lambda v: f"timestamp_micros({v})", lambda e: f"unix_micros({e})")).collect()[0][0]


def pyarrow():
    import datetime
    import pyarrow as pa, pyarrow.compute as pc, pyarrow.dataset as ds
    # A dataset takes the columns of its first file unless it is told: of all of them, in the widest type.
    first = ds.dataset(folder, partitioning="hive", format="parquet")
    schema = pa.unify_schemas([first.schema, *(f.physical_schema for f in first.get_fragments())], promote_options="permissive")
    data = ds.dataset(folder, schema=schema, partitioning="hive", format="parquet")
    def filter_of(q):
        one = None
        for name, kind, op, value in q["where"]:
            field = pc.field(name)
            given = pa.scalar(value, pa.timestamp("us", "UTC")) if kind == "timestamp" else value
            this = field.is_null() if op == "is null" else {"=": field == given, ">=": field >= given, "<": field < given}[op]
            one = this if one is None else one & this
        return one
    def answer(q):
        if q["what"] == "count":
            return data.count_rows(filter=filter_of(q))
        column = data.to_table(columns=[q["column"]], filter=filter_of(q))[q["column"]]
        if q["what"] == "nulls":
            return column.null_count
        if q["what"] == "distinct":
            return pc.count_distinct(column).as_py()
        value = {"sum": pc.sum, "min": pc.min, "max": pc.max}[q["what"]](column)
        return (value.cast(pa.int64()) if q["kind"] == "timestamp" else value).as_py()
    return answer


def polars():
    import polars as pl
    # One scan takes the columns of its first file; side by side by name, each file brings its own.
    data = pl.concat([pl.scan_parquet(file, hive_partitioning=True) for file in files], how="diagonal_relaxed")
    def answer(q):
        rows = data
        for name, kind, op, value in q["where"]:
            field = pl.col(name)
            given = pl.lit(value).cast(pl.Datetime("us", "UTC")) if kind == "timestamp" else pl.lit(value)
            rows = rows.filter(field.is_null() if op == "is null" else {"=": field == given, ">=": field >= given, "<": field < given}[op])
        column = pl.col(q["column"])
        what = {
            "count": lambda: pl.len(),
            "nulls": lambda: column.null_count(),
            "distinct": lambda: column.drop_nulls().n_unique(),
            "sum": lambda: pl.when(column.count() > 0).then(column.sum()),
            "min": lambda: column.min(),
            "max": lambda: column.max(),
        }[q["what"]]()
        if q["kind"] == "timestamp" and q["what"] in ("min", "max"):
            what = what.dt.epoch("us")
        return rows.select(what).collect().item()
    return answer


answer = {"duckdb": duckdb, "datafusion": datafusion, "chdb": chdb, "pyarrow": pyarrow, "polars": polars, "pyspark": spark}[reader]()
print("ANSWERS " + json.dumps([answer(question) for question in asked["questions"]]))
