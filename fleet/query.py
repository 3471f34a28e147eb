#!/usr/bin/env python3
"""Asks the tables that `jitscribe export --parquet DIR` wrote, by one of four engines.

    fleet/query.py ENGINE DIR QUERY...

ENGINE is duckdb, datafusion, clickhouse (the package chdb) or spark (the package pyspark, with Java 17). QUERY is the name of a query in
fleet/sql, or a file. Each answer is a line of JSON: the query, the columns, the rows, and the seconds that it took (wall clock, and processor
time of this process). `--set OLD=NEW` replaces a literal in the queries: --set "'1.0'='2.3'".
"""

import argparse
import json
import os
import pathlib
import sys
import time

TABLES = ("samples", "stacks", "functions", "codes")
SQL = pathlib.Path(__file__).resolve().parent / "sql"


def quoted(text):
    return "'" + str(text).replace("'", "''") + "'"


def duckdb_engine(folder):
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for table in TABLES:
        files = quoted(folder / table / "**" / "*.parquet")
        # `date` and `service` in the paths are for choosing files; the columns are in the files.
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet({files}, hive_partitioning = false)")

    def ask(sql):
        cursor = connection.execute(sql)
        return [column[0] for column in cursor.description], cursor.fetchall()

    return ask


def datafusion_engine(folder):
    import datafusion

    # `date` and `service` in the paths are for choosing files; the columns are in the files.
    config = datafusion.SessionConfig()
    config = config.set("datafusion.execution.listing_table_ignore_subdirectory", "false")
    config = config.set("datafusion.execution.listing_table_factory_infer_partitions", "false")
    context = datafusion.SessionContext(config)
    for table in TABLES:
        context.sql(f"CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION {quoted(str(folder / table) + '/')}")

    def ask(sql):
        answer = context.sql(sql)
        names = answer.schema().names
        columns = answer.to_pydict()
        return names, list(zip(*(columns[name] for name in names)))

    return ask


def clickhouse_engine(folder):
    from chdb import session

    connection = session.Session()
    connection.query("CREATE DATABASE fleet; USE fleet")
    for table in TABLES:
        files = quoted(folder / table / "**" / "*.parquet")
        connection.query(
            f"CREATE VIEW {table} AS SELECT * FROM file({files}, Parquet) SETTINGS use_hive_partitioning = 0"
        )

    def ask(sql):
        answer = json.loads(
            connection.query(sql + "\nSETTINGS output_format_json_quote_64bit_integers = 0", "JSONCompact").bytes()
        )
        return [column["name"] for column in answer["meta"]], answer["data"]

    return ask


def spark_engine(folder):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(os.environ.get("SPARK_MASTER", "local[2]")).appName("jitscribe")
    for key, value in (
        ("spark.driver.host", "127.0.0.1"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.sql.shuffle.partitions", "4"),
    ):
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    for table in TABLES:
        # `date` and `service` in the paths are for choosing files; the columns are in the files.
        reader = spark.read.option("recursiveFileLookup", "true")
        reader.parquet(str(folder / table)).createOrReplaceTempView(table)

    def ask(sql):
        answer = spark.sql(sql)
        return answer.columns, [tuple(row) for row in answer.collect()]

    return ask


ENGINES = {
    "duckdb": duckdb_engine,
    "datafusion": datafusion_engine,
    "clickhouse": clickhouse_engine,
    "spark": spark_engine,
}


def text_of(query, engine):
    for path in (SQL / f"{query}.sql", SQL / query / f"{engine}.sql", pathlib.Path(query)):
        if path.is_file():
            return path.read_text()
    sys.exit(f"query.py: no query {query}: there are {', '.join(sorted(path.stem for path in SQL.iterdir() if path.stem != 'tables'))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("query", nargs="+")
    parser.add_argument("--set", action="append", default=[], metavar="OLD=NEW")
    arguments = parser.parse_args()
    for table in TABLES:
        if not (arguments.folder / table).is_dir():
            sys.exit(f"query.py: {arguments.folder / table} is not there: write it with jitscribe export --parquet {arguments.folder}")
    ask = ENGINES[arguments.engine](arguments.folder.resolve())
    for query in arguments.query:
        sql = text_of(query, arguments.engine)
        for change in arguments.set:
            old, _, new = change.partition("=")
            sql = sql.replace(old, new)
        wall, processor = time.monotonic(), time.process_time()
        columns, rows = ask(sql)
        answer = {
            "query": query,
            "columns": columns,
            "rows": rows,
            "wall": round(time.monotonic() - wall, 3),
            "processor": round(time.process_time() - processor, 3),
        }
        print(json.dumps(answer, default=int), flush=True)


if __name__ == "__main__":
    main()
