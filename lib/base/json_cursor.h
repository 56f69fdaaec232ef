// Reads JSON text from the front to the back, without making values of the text.
//
//   JsonCursor cursor(text);
//   std::string_view name;
//   const bool good = cursor.Object([&](std::string_view key) {
//     return key == "name" ? cursor.PlainText(name) : cursor.Skip();
//   });
//   if (!good || !cursor.AtEnd()) Slow(text);
//
// The cursor takes the JSON that machines write, and refuses the rest, valid or not: a text with
// escapes or without ASCII (PlainText), a value nested deeper than kDepthMost. After a refusal the
// caller reads the text with TryParseJson (lib/base/json.h). Skip looks at quotes and brackets
// alone, so a skipped value may be no JSON.
//
// Scope: places in a text. json_part.h makes values.
//
// Thread safety: one thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tahoma {

class JsonCursor {
 public:
  static constexpr int kDepthMost = 60;  // of brackets in brackets

  explicit JsonCursor(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  // Returns the next byte that is no space; 0 at the end.
  char Peek() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    return at_ == end_ ? '\0' : *at_;
  }
  bool AtEnd() { return Peek() == '\0' && at_ == end_; }
  const char* place() const { return at_; }

  // Takes the byte if it is next.
  bool Take(char wanted) {
    if (Peek() != wanted || at_ == end_) return false;
    ++at_;
    return true;
  }
  // Calls member(key) at the value of each member. `member` takes the value, and returns whether
  // it could.
  template <typename Member>
  bool Object(Member&& member) {
    if (!Take('{')) return false;
    if (Take('}')) return true;
    do {
      std::string_view key;
      if (!PlainText(key) || !Take(':') || !member(key)) return false;
    } while (Take(','));
    return Take('}');
  }
  // Calls item() at each item, as Object does.
  template <typename Item>
  bool Array(Item&& item) {
    if (!Take('[')) return false;
    if (Take(']')) return true;
    do {
      if (!item()) return false;
    } while (Take(','));
    return Take(']');
  }

  // Takes a text of ASCII without escapes. `text` lives as long as the JSON text.
  bool PlainText(std::string_view& text) {
    if (!Take('"')) return false;
    const char* const begin = at_;
    if (!FindQuote()) return false;
    text = std::string_view(begin, static_cast<std::size_t>(at_ - begin));
    ++at_;
    bool plain = true;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      plain &= byte >= 0x20 && byte < 0x80 && byte != '\\';
    }
    return plain;
  }

  // Takes a value, whatever the value is.
  bool Skip() {
    std::uint64_t lists = 0;  // by depth, the innermost lowest: whether the bracket is a list's
    int depth = 0;
    do {
      switch (Peek()) {
        case '"':
          if (!SkipText()) return false;
          break;
        case '{':
        case '[':
          if (depth == kDepthMost) return false;
          lists = lists << 1U | static_cast<std::uint64_t>(*at_ == '[');
          ++depth;
          ++at_;
          break;
        case '}':
        case ']':
          if (depth == 0 || (lists & 1U) != static_cast<std::uint64_t>(*at_ == ']')) return false;
          lists >>= 1U;
          --depth;
          ++at_;
          break;
        case ',':
        case ':':
          if (depth == 0) return false;
          ++at_;
          break;
        default:
          if (std::string_view word; !Word(word)) return false;
      }
    } while (depth > 0);
    return true;
  }
  // Takes a number, or a word such as null.
  bool Word(std::string_view& word) {
    Peek();
    const char* const begin = at_;
    while (at_ != end_ && IsOfWord(*at_)) ++at_;
    word = std::string_view(begin, static_cast<std::size_t>(at_ - begin));
    return !word.empty();
  }
  // Takes a text, with escapes or without.
  bool SkipText() {
    if (!Take('"')) return false;
    for (const char* const begin = at_; FindQuote();) {
      const char* const quote = at_++;
      const char* before = quote;
      while (before != begin && before[-1] == '\\') --before;
      if ((quote - before) % 2 == 0) return true;  // else the last backslash escapes the quote
    }
    return false;
  }

 private:
  // Goes to the next quote.
  bool FindQuote() {
    const auto left = static_cast<std::size_t>(end_ - at_);
    const void* const quote = left == 0 ? nullptr : std::memchr(at_, '"', left);
    if (quote == nullptr) return false;
    at_ = static_cast<const char*>(quote);
    return true;
  }
  static bool IsOfWord(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' ||
           c == 'E';
  }

  const char* at_;
  const char* end_;
};

}  // namespace tahoma
