"""One aggregate of DuckDB over a log, a row a session, with one thread or more, and prints the seconds."""

import sys
import time

import duckdb

folder, threads = sys.argv[1], int(sys.argv[2])
database = duckdb.connect()
database.execute(f"SET threads = {threads}")
began = time.perf_counter()
rows = database.execute(
    """
    SELECT stream, max(time), count(*) FILTER (type = 'turn'), sum(data.tokens."in" + data.tokens."out")
    FROM read_json(?, format = 'newline_delimited', columns = {
        stream: 'VARCHAR', time: 'VARCHAR', type: 'VARCHAR',
        data: 'STRUCT(tokens STRUCT("in" BIGINT, "out" BIGINT))'
    })
    WHERE stream <> 'log' GROUP BY stream
    """,
    [f"{folder}/*.jsonl"],
).fetchall()
print(time.perf_counter() - began, len(rows))
