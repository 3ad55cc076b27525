"""Verifies an annals store with nothing but the standard library: python3 verify.py STORE
Every line and every content that lies apart is checked. What a whole line `log.gap` accepts is passed over and counted."""
import hashlib, json, pathlib, re, sys, zlib

LINE = re.compile(rb'\{"seq":([1-9]\d*),"time":"[^"]{27}","durable":\d+,"prev":"([0-9a-f]{8})",'
                  rb'"stream":"([^"]+)","version":\d+,"type":"([^"]+)",.*"data":\{.*\},"crc":"([0-9a-f]{8})"\}\n')
BLOB = re.compile(rb'"blob":\{"sha256":"([0-9a-f]{64})","bytes":(\d+)\},"data":')
store = pathlib.Path(sys.argv[1])
segments = sorted(path for path in (store / "log").iterdir() if re.fullmatch(r"\d{20}\.jsonl", path.name))


def whole(line):
    found = LINE.fullmatch(line)
    return found if found and found[5] == b"%08x" % zlib.crc32(line[:-19]) else None


gaps = [json.loads(line)["data"] for path in segments for line in path.open("rb")
        if (found := whole(line)) and found.group(3, 4) == (b"log", b"log.gap")]
seq, prev, lines, passed = 0, b"00000000", 0, 0


def pass_over(name, offset):
    """Goes on behind damage that was accepted here, if there is any; gives how many bytes it has."""
    global seq, prev, passed
    for gap in gaps:
        if gap["segment"] == name and (gap["offset"] == offset if name != "log" else gap["fromSeq"] == seq + 1):
            gaps.remove(gap)
            seq, prev, passed = max(seq, gap["toSeq"]), None, passed + 1
            return gap["bytes"]


for segment in segments:
    name, rest, offset = f"log/{segment.name}", segment.read_bytes(), 0
    if int(segment.stem) != seq + 1:
        pass_over("log", 0)
    while True:
        line = rest[:rest.find(b"\n") + 1] or rest
        found = whole(line)
        if found and int(found[1]) == seq + 1 and prev in (None, found[2]) and (offset or int(segment.stem) == seq + 1):
            seq, prev, lines, size = seq + 1, found[5], lines + 1, len(line)
            blob = BLOB.search(line)
            content = store / "blobs" / blob[1][:2].decode() / blob[1].decode() if blob else None
            kept = content and content.exists() and hashlib.sha256(content.read_bytes()).hexdigest() == content.name
            if content and not kept and pass_over(f"blobs/{content.parent.name}/{content.name}", 0) is None:
                sys.exit(f"{segment}: offset {offset}: the content of seq {seq} is not in {content}")
        else:
            size = pass_over(name, offset)
            if size is None and not rest:
                break
            if size is None:
                after = f"prev {prev.decode()}" if prev else "any prev"
                sys.exit(f"{segment}: offset {offset}: no line with seq {seq + 1}, {after}, and its own crc")
        rest, offset = rest[size:], offset + size
print(f"{lines} lines, last checksum {prev.decode()}" + (f", {passed} accepted gaps" if passed else ""))
