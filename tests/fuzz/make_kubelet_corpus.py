#!/usr/bin/env python3
"""Adds to the corpus of kubelet_fuzz requests as a kubelet sends them (dra-plugin/kubelet/*.proto), in the form of
kubelet_fuzz.cc: a byte for the method, two for the length, the message."""

import corpus

PREPARE, UNPREPARE, OLD_PREPARE, OLD_UNPREPARE, INFO, REGISTERED = range(6)


def text(field, value):
    """A string or message field; its value is shorter than 128 bytes."""
    value = value.encode() if isinstance(value, str) else value
    return bytes([field << 3 | 2, len(value)]) + value


def claims(*names):
    """The claims of a request: namespace, uid and name of each."""
    return b"".join(text(1, text(1, "default") + text(2, f"uid-{name}") + text(3, name)) for name in names)


def request(method, message):
    return bytes([method, *len(message).to_bytes(2, "big")]) + message


SEEDS = {
    "life": request(INFO, b"") + request(REGISTERED, b"\x08\x01") + request(PREPARE, claims("a"))
    + request(PREPARE, claims("a")) + request(UNPREPARE, claims("a")),
    "older": request(OLD_PREPARE, claims("a", "b")) + request(OLD_UNPREPARE, claims("b", "a")),
    "overlap": request(PREPARE, claims("a", "q", "c")) + request(UNPREPARE, claims("a")) + request(PREPARE, claims("q")),
    "another-uid": request(PREPARE, text(1, text(1, "default") + text(2, "uid-b") + text(3, "a"))),
    "refused": request(REGISTERED, text(2, "plugin name is taken")),
    "found-no-names": request(PREPARE, text(1, b"")) + request(UNPREPARE, text(1, text(2, "uid-a"))),
    "found-namespace-dots": request(PREPARE, text(1, text(1, "..") + text(2, "uid-.") + text(3, "."))),
    "no-message": request(PREPARE, b"\xff\xff"),
}


def main():
    corpus.add("kubelet", SEEDS)


if __name__ == "__main__":
    main()
