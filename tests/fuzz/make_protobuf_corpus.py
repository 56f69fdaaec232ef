#!/usr/bin/env python3
"""Adds to the corpus of protobuf_fuzz the objects of tests/golden/protobuf, objects as Go's types write them.

Of each kind the smallest and the largest object, as the body and as JSON; none over 4 KiB.
"""

import base64
import json
import pathlib

import corpus

ROOT = pathlib.Path(__file__).resolve().parents[2]
BYTES_MAX = 4096


def main():
    inputs = {}
    for file in sorted((ROOT / "tests/golden/protobuf").glob("*.jsonl")):
        objects = []
        for line in file.read_text().splitlines():
            vector = json.loads(line)
            body = base64.b64decode(vector["protobuf"])
            text = json.dumps(vector["json"], ensure_ascii=False, separators=(",", ":")).encode()
            if max(len(body), len(text)) <= BYTES_MAX:
                objects.append((body, text))
        objects.sort(key=lambda pair: len(pair[0]))
        for name, (body, text) in {"least": objects[0], "most": objects[-1]}.items():
            inputs[f"{file.stem}-{name}"] = body
            inputs[f"{file.stem}-{name}.json"] = text
    corpus.add("protobuf", inputs)


if __name__ == "__main__":
    main()
