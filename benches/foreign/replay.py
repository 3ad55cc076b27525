"""Folds a log into session rows as a program does that parses every line, and prints the seconds."""

import json
import pathlib
import sys
import time

began = time.perf_counter()
rows = {}
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.jsonl")):
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            event = json.loads(line)
            row = rows.setdefault(event["stream"], {"turns": 0, "tokens": 0, "updated": ""})
            row["updated"] = event["time"]
            if event["type"] == "turn":
                row["turns"] += 1
                tokens = event["data"].get("tokens")
                if tokens:
                    row["tokens"] += tokens["in"] + tokens["out"]
rows.pop("log", None)
print(time.perf_counter() - began, len(rows))
