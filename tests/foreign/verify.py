"""Verifies the log of an annals store with nothing but the standard library: python3 verify.py STORE"""
import pathlib, re, sys, zlib

LINE = re.compile(rb'\{"seq":([1-9]\d*),"time":"[^"]{27}","durable":\d+,"prev":"([0-9a-f]{8})",'
                  rb'"stream":"[^"]+","version":\d+,"type":"[^"]+",.*"data":\{.*\},"crc":"([0-9a-f]{8})"\}\n')
seq, prev = 0, b"00000000"
for segment in sorted(pathlib.Path(sys.argv[1], "log").glob("*.jsonl")):
    offset = 0
    for line in segment.open("rb"):
        found, crc = LINE.fullmatch(line), b"%08x" % zlib.crc32(line[:-19])
        if not found or found.groups() != (b"%d" % (seq + 1), prev, crc) or not offset and int(segment.stem) != seq + 1:
            sys.exit(f"{segment}: offset {offset}: no line with seq {seq + 1}, prev {prev.decode()}, crc {crc.decode()}")
        seq, prev, offset = seq + 1, crc, offset + len(line)
print(f"{seq} lines, last checksum {prev.decode()}")
