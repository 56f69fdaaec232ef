#include "controller/ctl/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

// Whether text can stand in YAML without quotes and still be text.
bool IsPlain(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' ||
           c == '/';
  };
  static const auto* const words = new std::vector<std::string>{
      "true", "false", "null", "yes", "no",  "on",   "off",   "True", "False",
      "Null", "Yes",   "No",   "y",   "n",   "TRUE", "FALSE", "NULL", "YES",
      "NO",   "ON",    "OFF",  "On",  "Off", "Y",    "N"};
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
         std::ranges::all_of(text, plain) && std::ranges::find(*words, text) == words->end();
}

// JSON's quotes are YAML's as well.
std::string Scalar(const Json& value) {
  if (value.is_string() && IsPlain(value.get<std::string>())) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool IsBlock(const Json& value) { return value.is_structured() && !value.empty(); }

void WriteIndented(const Json& value, const std::string& indent, std::string& text) {
  if (value.is_object()) {
    bool first = true;
    for (const auto& [key, member] : value.items()) {
      if (!std::exchange(first, false)) text += indent;
      text += Scalar(key) + ":";
      if (!IsBlock(member)) {
        text += " " + Scalar(member) + "\n";
      } else if (member.is_array()) {
        text += "\n" + indent;
        WriteIndented(member, indent, text);
      } else {
        text += "\n" + indent + "  ";
        WriteIndented(member, indent + "  ", text);
      }
    }
    return;
  }
  bool first = true;
  for (const Json& item : value) {
    if (!std::exchange(first, false)) text += indent;
    text += "- ";
    if (IsBlock(item)) {
      WriteIndented(item, indent + "  ", text);
    } else {
      text += Scalar(item) + "\n";
    }
  }
}

}  // namespace

std::string TableText(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  return TableText(rows, widths);
}

std::string TableText(const std::vector<std::vector<std::string>>& rows,
                      std::vector<std::size_t>& widths) {
  widths.resize(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += fmt::format("{:<{}}", row[i], widths[i] + 3);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string YamlText(const Json& value) {
  if (!IsBlock(value)) return Scalar(value) + "\n";
  std::string text;
  WriteIndented(value, "", text);
  return text;
}

}  // namespace tahoma::controller
