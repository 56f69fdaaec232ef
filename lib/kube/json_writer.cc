#include "lib/kube/json_writer.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <utility>

#include "lib/base/json.h"

namespace tahoma::kube {
namespace {

using json = Json;

// Returns whether a character of ASCII is written as it is: the printable ones and DEL.
bool IsPlain(char c) { return c >= 0x20 && c != '"' && c != '\\'; }

// Sixteen characters at once, by the compiler's vectors; half of them may be used.
using Chars = signed char __attribute__((vector_size(16)));

// Returns whether no character needs an escape, or could be part of invalid UTF-8 (those are
// negative).
bool ArePlain(Chars chars) {
  const Chars special = (chars < 0x20) | (chars == '"') | (chars == '\\');
  std::array<std::uint64_t, 2> halves;
  std::memcpy(halves.data(), &special, sizeof special);
  return (halves[0] | halves[1]) == 0;
}

// Returns how many characters at the front are plain, at least; it looks at sixteen at a time.
std::size_t PlainPrefix(std::string_view text) {
  std::size_t at = 0;
  for (; at + sizeof(Chars) <= text.size(); at += sizeof(Chars)) {
    Chars chars;
    std::memcpy(&chars, text.data() + at, sizeof chars);
    if (!ArePlain(chars)) break;
  }
  while (at < text.size() && IsPlain(text[at])) ++at;
  return at;
}

// Copies `Bytes` characters, and returns whether all are plain. A short piece is repeated to fill
// the vector.
template <std::size_t Bytes>
bool CopyChars(const char* from, char* to) {
  std::array<char, Bytes> some;
  std::memcpy(some.data(), from, Bytes);
  std::memcpy(to, some.data(), Bytes);
  Chars chars;
  for (std::size_t at = 0; at < sizeof chars; at += Bytes) {
    std::memcpy(reinterpret_cast<char*>(&chars) + at, some.data(), Bytes);
  }
  return ArePlain(chars);
}

// Copies a text that is plain throughout. Otherwise stops somewhere and returns false.
bool CopyPlain(std::string_view text, char* to) {
  const char* from = text.data();
  const std::size_t size = text.size();
  if (size >= 16) {
    for (std::size_t at = 0; at + 16 <= size; at += 16) {
      if (!CopyChars<16>(from + at, to + at)) return false;
    }
    return CopyChars<16>(from + size - 16, to + size - 16);  // the last sixteen, some twice
  }
  if (size >= 8) return CopyChars<8>(from, to) && CopyChars<8>(from + size - 8, to + size - 8);
  if (size >= 4) return CopyChars<4>(from, to) && CopyChars<4>(from + size - 4, to + size - 4);
  for (std::size_t at = 0; at < size; ++at) {
    if (!IsPlain(text[at])) return false;
    to[at] = text[at];
  }
  return true;
}

// Appends any text, with escapes.
void AppendEscaped(std::string_view text, std::string& out) {
  const std::size_t start = out.size();
  out += '"';
  std::string_view rest = text;
  while (true) {
    const std::size_t plain = PlainPrefix(rest);
    out.append(rest.data(), plain);
    if (plain == rest.size()) break;
    const char special = rest[plain];
    if (special != '"' && special != '\\') {
      // Control characters, and bytes that may not be UTF-8, are rare: the library knows them all.
      out.resize(start);
      out += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
      return;
    }
    out += '\\';
    out += special;
    rest.remove_prefix(plain + 1);
  }
  out += '"';
}

// Appends a text in quotes, between two characters of which either may be none (zero).
void AppendQuoted(char before, std::string_view text, char after, std::string& out) {
  const std::size_t start = out.size();
  const std::size_t lead = before == 0 ? 0 : 1;
  const std::size_t trail = after == 0 ? 0 : 1;
  out.resize(start + lead + text.size() + 2 + trail);
  char* to = out.data() + start;
  if (before != 0) *to++ = before;
  to[0] = '"';
  to[text.size() + 1] = '"';
  if (after != 0) to[text.size() + 2] = after;
  if (CopyPlain(text, to + 1)) return;
  out.resize(start + lead);
  AppendEscaped(text, out);
  if (after != 0) out += after;
}

template <typename Integer>
void AppendInteger(Integer value, std::string& out) {
  std::array<char, 24> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  out.append(text.data(), static_cast<std::size_t>(end - text.data()));
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& out) { AppendQuoted(0, text, 0, out); }

void AppendJson(const json& value, std::string& out) {
  switch (value.type()) {
    case json::value_t::object:
      if (value.empty()) out += '{';
      for (char separator = '{'; const auto& [name, member] : MembersOf(value)) {
        AppendQuoted(std::exchange(separator, ','), name, ':', out);
        AppendJson(member, out);
      }
      out += '}';
      return;
    case json::value_t::array:
      if (value.empty()) out += '[';
      for (char separator = '['; const json& item : value.get_ref<const json::array_t&>()) {
        out += std::exchange(separator, ',');
        AppendJson(item, out);
      }
      out += ']';
      return;
    case json::value_t::string:
      return AppendJsonString(value.get_ref<const std::string&>(), out);
    case json::value_t::number_integer:
      return AppendInteger(value.get<std::int64_t>(), out);
    case json::value_t::number_unsigned:
      return AppendInteger(value.get<std::uint64_t>(), out);
    case json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      return;
    case json::value_t::binary:
      out.append(value.get_binary().begin(), value.get_binary().end());
      return;
    default:
      out += value.dump();
  }
}

std::string JsonText(const json& value) {
  std::string text;
  AppendJson(value, text);
  return text;
}

}  // namespace tahoma::kube
