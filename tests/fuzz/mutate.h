// Changes of texts, for fuzz targets: bytes, words of a dictionary, and JSON values.
//
//   Mutator mutator(ReadCorpus("api"), ReadDictionary("dictionaries/api.dict"));
//   std::string text = mutator.Pick(rng);
//   mutator.Mutate(rng, text);
//   MutateJson(rng, text);             // "a": [1] becomes "a": null, or is there twice, or gone
//
// Scope: texts; whether they mean anything is the target's question.
//
// Thread safety: a Mutator is immutable; the functions are pure but for the Rng.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/rng.h"

namespace tahoma::fuzz {

// Returns the inputs of a target's corpus, as the build has unpacked it (corpus.py), by name.
// Empty when the target has no corpus.
std::vector<std::string> ReadCorpus(const std::string& target);

// The words of a dictionary in libFuzzer's form: lines `name="te\x00xt"`, `#` begins a comment.
// Empty when there is no such file.
std::vector<std::string> ReadDictionary(const std::string& file);

// Replaces, removes, repeats, wraps or exchanges one JSON value somewhere in the text. The text
// need not be JSON: a value is what begins like one, as far as its brackets or quotes reach.
void MutateJson(Rng& rng, std::string& text);

class Mutator {
 public:
  Mutator(std::vector<std::string> texts, std::vector<std::string> words)
      : texts_(std::move(texts)), words_(std::move(words)) {
    if (texts_.empty()) texts_.emplace_back();
  }

  const std::vector<std::string>& texts() const { return texts_; }
  const std::string& Pick(Rng& rng) const { return texts_[rng.Below(texts_.size())]; }
  // One to six small changes: a byte, a word, a piece of another text, a JSON value.
  void Mutate(Rng& rng, std::string& text) const;

 private:
  void MutateOnce(Rng& rng, std::string& text) const;

  std::vector<std::string> texts_;
  std::vector<std::string> words_;
};

}  // namespace tahoma::fuzz
