"""What the readers share: options in, rows out in one form."""
import datetime, glob, json, os, sys

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def options():
    return json.loads(sys.stdin.read())


def plain(value):
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=datetime.timezone.utc)
        delta = value - EPOCH
        return f"{(delta.days * 86400 + delta.seconds) * 1_000_000 + delta.microseconds} us"
    # Larger integers than a double holds travel as text.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


def show(found):
    found["rows"] = [{k: plain(v) for k, v in row.items()} for row in found["rows"]]
    print_found(found)


def print_found(found):
    print("FOUND " + json.dumps(found))


def duckdb_with(extensions):
    import duckdb
    db = duckdb.connect()
    for name in extensions:
        module = __import__(f"duckdb_extension_{name}")
        folder = os.path.join(os.path.dirname(module.__file__), "extensions")
        db.execute(f"LOAD '{glob.glob(os.path.join(folder, '*', '*.duckdb_extension'))[0]}'")
    db.execute("SET TimeZone = 'UTC'")
    return db


def spark_with(o):
    from pyspark.sql import SparkSession
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = session.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    session = session.config("spark.jars", ",".join(o["jars"])).config("spark.sql.session.timeZone", "UTC")
    session = session.config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
    for key, value in o["spark"].items():
        session = session.config(f"spark.sql.catalog.tributary{key}", value)
    spark = session.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
