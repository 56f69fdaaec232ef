#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

namespace tahoma::fuzz {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The text between the quotes of a dictionary's line.
std::string Unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && text[i + 1] == 'x') {
      out += static_cast<char>(16 * HexDigit(text[i + 2]) + HexDigit(text[i + 3]));
      i += 3;
    } else {
      if (text[i] == '\\') ++i;
      if (i < text.size()) out += text[i];
    }
  }
  return out;
}

struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Where the text that begins with a quote at `at` ends.
std::size_t EndOfString(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(text.size(), at + 1);
}

std::size_t EndOfBrackets(std::string_view text, std::size_t at) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = EndOfString(text, at);
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++at;
    if (depth <= 0) break;
  }
  return at;
}

std::size_t EndOfWord(std::string_view text, std::size_t at) {
  return std::min(text.size(), text.find_first_of(",]} \t\r\n:", at));
}

// The first value at or after `from`; nothing when there is none.
std::optional<Span> ValueAfter(std::string_view text, std::size_t from) {
  const std::size_t at = text.find_first_of("{[\"0123456789-tfn", from);
  if (at == std::string_view::npos) return std::nullopt;
  const char c = text[at];
  if (c == '"') return Span{at, EndOfString(text, at)};
  if (c == '{' || c == '[') return Span{at, EndOfBrackets(text, at)};
  return Span{at, std::max(at + 1, EndOfWord(text, at))};
}

std::optional<Span> AnyValue(Rng& rng, std::string_view text) {
  return text.empty() ? std::nullopt : ValueAfter(text, rng.Below(text.size()));
}

// Values at which programs stumble: every type, bounds of numbers, texts that are none.
constexpr std::array<std::string_view, 36> kValues = {
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1",
    "1.5",
    "-0",
    "1e400",
    "1e18",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "2147483648",
    "\"\"",
    "\"x\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"\xff\"",
    "\"\xc3\xa9\"",
    "\"../..\"",
    "\"1\"",
    "\"1Gi\"",
    "\"2020-01-01T00:00:00Z\"",
    "\"$patch\"",
    "{}",
    "[]",
    "[null]",
    "[[]]",
    "[\"x\"]",
    "{\"x\":null}",
    "{\"\":1}",
    "[{}]",
    "{\"x\":{\"x\":{\"x\":[]}}}",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"};

std::string_view Value(Rng& rng) { return kValues[rng.Below(kValues.size())]; }

std::string At(std::string_view text, Span span) {
  return std::string(text.substr(span.begin, span.end - span.begin));
}

}  // namespace

std::vector<std::string> ReadCorpus(const std::string& target) {
  const std::string folder = std::string(TAHOMA_FUZZ_CORPUS) + "/" + target;
  std::vector<std::filesystem::path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const auto& file : files) texts.push_back(ReadFile(file));
  return texts;
}

std::vector<std::string> ReadDictionary(const std::string& file) {
  std::vector<std::string> words;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t begin = line.find('"');
    const std::size_t end = line.rfind('"');
    if (line.starts_with('#') || begin == std::string::npos || end <= begin) continue;
    words.push_back(Unescape(std::string_view(line).substr(begin + 1, end - begin - 1)));
  }
  return words;
}

void MutateJson(Rng& rng, std::string& text) {
  const std::optional<Span> span = AnyValue(rng, text);
  if (!span) {
    text += Value(rng);
    return;
  }
  const std::string value = At(text, *span);
  const auto replace = [&](std::string_view with) {
    text.replace(span->begin, span->end - span->begin, with);
  };
  switch (rng.Below(7)) {
    case 0:
      return replace("[" + value + "]");
    case 1:
      return replace("{\"x\":" + value + "}");
    case 2:
      return replace(value + "," + value);
    case 3:
      return replace("");
    case 4:
      if (const auto other = AnyValue(rng, text)) return replace(At(text, *other));
      return;
    default:
      return replace(Value(rng));
  }
}

void Mutator::MutateOnce(Rng& rng, std::string& text) const {
  const std::size_t at = text.empty() ? 0 : rng.Below(text.size());
  switch (rng.Below(8)) {
    case 0:
      if (!text.empty()) text[at] = static_cast<char>(rng.Below(256));
      return;
    case 1:
      if (!text.empty()) text.erase(at, 1 + rng.Below(8));
      return;
    case 2:
      text.insert(at, text.substr(at, 1 + rng.Below(32)));
      return;
    case 3: {
      const std::string& other = Pick(rng);
      if (!other.empty()) text.insert(at, other.substr(rng.Below(other.size()), 1 + rng.Below(64)));
      return;
    }
    case 4:
      if (!words_.empty()) text.insert(at, words_[rng.Below(words_.size())]);
      return;
    default:
      return MutateJson(rng, text);
  }
}

void Mutator::Mutate(Rng& rng, std::string& text) const {
  constexpr std::size_t kBytesMax = 64 << 10;
  for (std::uint64_t changes = 1 + rng.Below(6); changes > 0; --changes) MutateOnce(rng, text);
  if (text.size() > kBytesMax) text.resize(kBytesMax);
}

}  // namespace tahoma::fuzz
