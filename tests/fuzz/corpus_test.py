#!/usr/bin/env python3
"""Tests of corpus.py, in a folder in the place of tests/fuzz/corpus."""

import pathlib
import tempfile
import unittest

import corpus


class CorpusTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "out"
        corpus.CORPUS = pathlib.Path(folder.name) / "corpus"

    def unpacked(self, target):
        corpus.unpack(self.out)
        return {file.name: file.read_bytes() for file in (self.out / target).iterdir()}

    def test_what_was_added_is_unpacked_and_what_was_removed_goes(self):
        inputs = {"a": b"1", "b": bytes(range(256)), "found-c": b""}
        self.assertEqual(corpus.add("api", inputs), 3)
        self.assertEqual(self.unpacked("api"), inputs)
        self.assertEqual([file.name for file in (corpus.CORPUS / "api").iterdir()], ["found-c"])
        corpus.remove("api", ["a", "found-c"])
        self.assertEqual(self.unpacked("api"), {"b": inputs["b"]})

    def test_only_new_inputs_count(self):
        corpus.add("api", {"a": b"1", "found-c": b"2"})
        self.assertEqual(corpus.add("api", {"a": b"1", "found-c": b"2", "d": b"3"}), 1)

    def test_the_same_inputs_make_the_same_archive_in_any_order(self):
        corpus.add("one", {"a": b"1"})
        corpus.add("one", {"b": b"2"})
        corpus.add("two", {"b": b"2", "a": b"1"})
        self.assertEqual(corpus.archive_of("one").read_bytes(), corpus.archive_of("two").read_bytes())

    def test_every_target_of_the_tree_has_inputs_and_its_archive_none_that_showed_a_mistake(self):
        corpus.CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
        self.assertGreater(len(corpus.targets()), 20)
        for target in corpus.targets():
            inputs = corpus.packed(target)
            self.assertTrue(inputs, target)
            self.assertFalse([name for name in inputs if name.startswith(corpus.FOUND)], target)


if __name__ == "__main__":
    unittest.main()
