#include "lib/kube/json_writer.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

namespace tahoma::kube {
namespace {

using nlohmann::json;

// Of ASCII's printable characters and DEL, which is written as it is.
bool IsPlain(char c) { return c >= 0x20 && c != '"' && c != '\\'; }

constexpr std::uint64_t Eightfold(std::uint64_t byte) { return byte * 0x0101010101010101U; }

// Sets the top bit of a byte that is zero (and maybe of bytes above one).
std::uint64_t ZeroBytes(std::uint64_t bytes) {
  return (bytes - Eightfold(0x01)) & ~bytes & Eightfold(0x80);
}

// How many characters at the front are plain, looked at eight at a time; at least none.
std::size_t PlainPrefix(std::string_view text) {
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= text.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    const std::uint64_t control = (bytes - Eightfold(0x20)) & ~bytes;
    const std::uint64_t special =
        ZeroBytes(bytes ^ Eightfold('"')) | ZeroBytes(bytes ^ Eightfold('\\'));
    if (((control | bytes | special) & Eightfold(0x80)) != 0) break;
  }
  while (at < text.size() && IsPlain(text[at])) ++at;
  return at;
}

template <typename Integer>
void AppendInteger(Integer value, std::string& out) {
  std::array<char, 24> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  out.append(text.data(), static_cast<std::size_t>(end - text.data()));
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& out) {
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

void AppendJson(const json& value, std::string& out) {
  char separator = 0;
  const auto separate = [&] {
    if (separator != 0) out += separator;
    separator = ',';
  };
  switch (value.type()) {
    case json::value_t::object:
      out += '{';
      for (auto at = value.begin(); at != value.end(); ++at) {
        separate();
        AppendJsonString(at.key(), out);
        out += ':';
        AppendJson(*at, out);
      }
      out += '}';
      return;
    case json::value_t::array:
      out += '[';
      for (const json& item : value) {
        separate();
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
