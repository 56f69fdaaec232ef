#include "lib/kube/cel/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "lib/base/ascii.h"
#include "lib/base/status.h"

namespace tahoma::kube::internal {
namespace {

bool IsIdentifierStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

void AppendUtf8(std::uint32_t code, std::string& into) {
  const auto put = [&into](std::uint32_t byte) { into += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | code >> 6);
    put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0U | code >> 12);
    put(0x80U | (code >> 6 & 0x3FU));
    put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | code >> 18);
    put(0x80U | (code >> 12 & 0x3FU));
    put(0x80U | (code >> 6 & 0x3FU));
    put(0x80U | (code & 0x3FU));
  }
}

// Returns the whole character at `at`, for messages: half a character is no text.
std::string_view CharacterAt(std::string_view source, std::size_t at) {
  std::size_t end = at + 1;
  while (end < source.size() && (static_cast<unsigned char>(source[end]) & 0xC0U) == 0x80U) ++end;
  return source.substr(at, end - at);
}

CelToken Literal(std::size_t at, CelValue value) {
  return {.kind = CelTokenKind::kLiteral, .at = at, .text = "", .literal = std::move(value)};
}

}  // namespace

bool IsCelWord(std::string_view name) {
  static constexpr std::array<std::string_view, 21> kWords = {
      "as",       "break",   "const",  "continue", "else", "false", "for",
      "function", "if",      "import", "in",       "let",  "loop",  "namespace",
      "null",     "package", "return", "true",     "var",  "void",  "while"};
  return std::find(kWords.begin(), kWords.end(), name) != kWords.end();
}

absl::Status CelErrorAt(std::string_view source, std::size_t at, std::string_view message) {
  const std::string_view before = source.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  // npos + 1 is 0: the start of the only line.
  const std::size_t column = CodePoints(before.substr(before.rfind('\n') + 1)) + 1;
  return InvalidArgument("{}:{}: {}", line, column, message);
}

void CelLexer::SkipSpace() {
  while (at_ < source_.size()) {
    const char c = source_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
      ++at_;
    } else if (Rest("//")) {
      at_ = std::min(source_.find('\n', at_), source_.size());
    } else {
      break;
    }
  }
}

absl::StatusOr<CelToken> CelLexer::Next() {
  SkipSpace();
  const std::size_t start = at_;
  if (at_ == source_.size()) return CelToken{.kind = CelTokenKind::kEnd, .at = start};
  const char c = source_[at_];
  if (IsDigit(c) || (c == '.' && at_ + 1 < source_.size() && IsDigit(source_[at_ + 1]))) {
    return Number();
  }
  if (c == '"' || c == '\'') return Quoted(false, false);
  if (IsIdentifierStart(c)) return Word();
  static constexpr std::array<std::string_view, 24> kSymbols = {
      "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "+", "-", "*",
      "/",  "%",  "?",  ":",  ",",  ".",  "(", ")", "[", "]", "{", "}"};
  for (const std::string_view symbol : kSymbols) {
    if (!Rest(symbol)) continue;
    at_ += symbol.size();
    return CelToken{.kind = CelTokenKind::kSymbol, .at = start, .text = std::string(symbol)};
  }
  return CelErrorAt(source_, start,
                    fmt::format("unexpected character '{}'", CharacterAt(source_, start)));
}

absl::StatusOr<CelToken> CelLexer::Word() {
  const std::size_t start = at_;
  // A prefix of a string: r, b, or both in either order and case.
  std::size_t prefix = 0;
  bool raw = false;
  bool bytes = false;
  while (prefix < 2 && at_ + prefix < source_.size()) {
    const char p = source_[at_ + prefix];
    if ((p == 'r' || p == 'R') && !raw)
      raw = true;
    else if ((p == 'b' || p == 'B') && !bytes)
      bytes = true;
    else
      break;
    ++prefix;
  }
  const char quote = at_ + prefix < source_.size() ? source_[at_ + prefix] : '\0';
  if (prefix > 0 && (quote == '"' || quote == '\'')) {
    at_ += prefix;
    return Quoted(raw, bytes);
  }
  while (at_ < source_.size() && (IsIdentifierStart(source_[at_]) || IsDigit(source_[at_]))) {
    ++at_;
  }
  return CelToken{.kind = CelTokenKind::kIdentifier,
                  .at = start,
                  .text = std::string(source_.substr(start, at_ - start))};
}

absl::StatusOr<CelToken> CelLexer::Number() {
  const std::size_t start = at_;
  const bool hex = Rest("0x") || Rest("0X");
  bool real = false;
  if (hex) at_ += 2;
  while (at_ < source_.size()) {
    const char c = source_[at_];
    if (hex ? IsHexDigit(c) : IsDigit(c)) {
      ++at_;
    } else if (!hex && c == '.' && !real && at_ + 1 < source_.size() && IsDigit(source_[at_ + 1])) {
      real = true;
      ++at_;
    } else if (!hex && (c == 'e' || c == 'E')) {
      real = true;
      ++at_;
      if (at_ < source_.size() && (source_[at_] == '+' || source_[at_] == '-')) ++at_;
    } else {
      break;
    }
  }
  const bool is_unsigned = at_ < source_.size() && (source_[at_] == 'u' || source_[at_] == 'U');
  const char* first = source_.data() + start + (hex ? 2 : 0);
  const char* last = source_.data() + at_;
  const auto bad = [&] {
    return CelErrorAt(
        source_, start,
        fmt::format("\"{}\" is not a number that fits", source_.substr(start, at_ - start)));
  };
  if (real) {
    double value = 0;
    const auto [end, error] = std::from_chars(first, last, value);
    if (error != std::errc() || end != last || is_unsigned) return bad();
    return Literal(start, CelValue(value));
  }
  // The largest int plus 1 is kept as uint: with a minus sign before, the number fits.
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(first, last, value, hex ? 16 : 10);
  if (error != std::errc() || end != last) return bad();
  if (is_unsigned) {
    ++at_;
    return Literal(start, CelValue(value));
  }
  if (value > std::uint64_t{1} << 63) return bad();
  CelToken token = Literal(start, CelValue(static_cast<std::int64_t>(value)));
  token.text = value == std::uint64_t{1} << 63 ? "2^63" : "";
  return token;
}

absl::StatusOr<CelToken> CelLexer::Quoted(bool raw, bool bytes) {
  const std::size_t start = at_;
  const char quote = source_[at_];
  const std::string three(3, quote);
  const bool tripled = Rest(three);
  at_ += tripled ? 3 : 1;
  std::string text;
  while (true) {
    if (at_ >= source_.size() || (!tripled && (source_[at_] == '\n' || source_[at_] == '\r'))) {
      return CelErrorAt(source_, start, "the string does not end");
    }
    if (tripled ? Rest(three) : source_[at_] == quote) break;
    if (source_[at_] == '\\' && !raw) {
      TAHOMA_RETURN_IF_ERROR(Escape(bytes, text));
    } else {
      text += source_[at_++];
    }
  }
  at_ += tripled ? 3 : 1;
  if (bytes) return Literal(start, CelValue(CelValue::Bytes{std::move(text)}));
  return Literal(start, CelValue(std::move(text)));
}

absl::StatusOr<std::uint32_t> CelLexer::Digits(std::size_t count, int base) {
  if (at_ + count > source_.size()) return CelErrorAt(source_, at_, "the escape does not end");
  std::uint32_t value = 0;
  const char* first = source_.data() + at_;
  const auto [end, error] = std::from_chars(first, first + count, value, base);
  if (error != std::errc() || end != first + count) {
    return CelErrorAt(source_, at_, "bad digits in an escape");
  }
  at_ += count;
  return value;
}

absl::Status CelLexer::Escape(bool bytes, std::string& into) {
  const std::size_t start = at_++;
  if (at_ == source_.size()) return CelErrorAt(source_, start, "the escape does not end");
  const char c = source_[at_];
  static constexpr std::string_view kNames = "abfnrtv\\?\"'`";
  static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\?\"'`";
  if (const std::size_t at = kNames.find(c); at != std::string_view::npos) {
    into += kValues[at];
    ++at_;
    return absl::OkStatus();
  }
  std::uint32_t code = 0;
  if (c >= '0' && c <= '3') {
    TAHOMA_ASSIGN_OR_RETURN(code, Digits(3, 8));
  } else if (c == 'x' || c == 'X' || ((c == 'u' || c == 'U') && !bytes)) {
    ++at_;
    TAHOMA_ASSIGN_OR_RETURN(code, Digits(c == 'u' ? 4 : c == 'U' ? 8 : 2, 16));
  } else {
    return CelErrorAt(source_, start,
                      fmt::format("unknown escape \"\\{}\"", CharacterAt(source_, at_)));
  }
  if (bytes) {
    into += static_cast<char>(code);
    return absl::OkStatus();
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
    return CelErrorAt(source_, start, "the escape is no Unicode code point");
  }
  AppendUtf8(code, into);
  return absl::OkStatus();
}

}  // namespace tahoma::kube::internal
