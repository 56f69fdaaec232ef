#include "lib/kube/json_writer.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace tahoma::kube {
namespace {

using nlohmann::json;

// Of ASCII's printable characters and DEL, which is written as it is.
bool IsPlain(char c) { return c >= 0x20 && c != '"' && c != '\\'; }

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
  const char* run = text.data();
  const char* const end = run + text.size();
  for (const char* at = run; at != end; ++at) {
    if (IsPlain(*at)) continue;
    out.append(run, at);
    run = at;
    if (*at == '"' || *at == '\\') {
      out += '\\';
      continue;
    }
    // Control characters, and bytes that may not be UTF-8, are rare: the library knows them all.
    out.resize(start);
    out += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
    return;
  }
  out.append(run, end);
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
