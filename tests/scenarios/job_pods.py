#!/usr/bin/env python3
"""Prints a manifest whose Jobs are replaced by the pods that kube-controller-manager would make of them.

    job_pods.py FILE        FILE has documents of YAML; other kinds than Job are printed as they are

For test environments whose API server has no Jobs. All pods of an indexed Job are printed, each with its labels. The
Job's `template:` is the last of its spec, and begins with `metadata:`.
"""

import re
import sys
import textwrap


def pods_of(job):
    name = re.search(r"^  name: (\S+)$", job, re.MULTILINE)[1]
    completions = int(re.search(r"^  completions: (\d+)$", job, re.MULTILINE)[1])
    template = textwrap.dedent(job.split("\n  template:\n", 1)[1])
    for index in range(completions):
        head = (f"metadata:\n  name: {name}-{index}-a{index}b2c\n  labels:\n"
                f"    batch.kubernetes.io/job-name: {name}\n"
                f"    batch.kubernetes.io/job-completion-index: \"{index}\"\n")
        yield "apiVersion: v1\nkind: Pod\n" + template.replace("metadata:\n", head, 1)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        documents = file.read().split("\n---\n")
    printed = []
    for document in documents:
        is_job = re.search(r"^kind: Job$", document, re.MULTILINE)
        printed += list(pods_of(document)) if is_job else [document]
    print("\n---\n".join(printed))


if __name__ == "__main__":
    main()
