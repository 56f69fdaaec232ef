#include "controller/ec2/xml.h"

#include <fmt/format.h>

#include "lib/base/utf8.h"

namespace tahoma::controller::ec2 {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

void AppendAscii(char c, std::string& out) {
  switch (c) {
    case '&':
      out += "&amp;";
      return;
    case '<':
      out += "&lt;";
      return;
    case '>':
      out += "&gt;";
      return;
    case '"':
      out += "&quot;";
      return;
    case '\'':
      out += "&apos;";
      return;
    case '\r':  // a reader takes a bare one for a line feed
      out += "&#13;";
      return;
    case '\t':
    case '\n':
      out += c;
      return;
    default:
      if (static_cast<unsigned char>(c) < 0x20) {
        out += kReplacement;
      } else {
        out += c;
      }
  }
}

// Returns the bytes of the first character of `text`; 0 for bytes that are not UTF-8, and for the
// two code points that XML leaves out beside control characters.
std::size_t CharacterBytes(std::string_view text) {
  constexpr std::size_t kCharacterBytesMost = 4;
  for (std::size_t bytes = 1; bytes <= kCharacterBytesMost && bytes <= text.size(); ++bytes) {
    const std::string_view character = text.substr(0, bytes);
    if (!IsUtf8(character)) continue;
    return character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF" ? 0 : bytes;
  }
  return 0;
}

}  // namespace

std::string EscapeXml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const char first = text.front();
    if (static_cast<unsigned char>(first) < 0x80) {
      AppendAscii(first, out);
      text.remove_prefix(1);
      continue;
    }
    const std::size_t bytes = CharacterBytes(text);
    out += bytes == 0 ? kReplacement : text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return out;
}

std::string FormatMilliTime(WallTime time) {
  const auto millis = std::chrono::floor<std::chrono::milliseconds>(
      time - std::chrono::floor<std::chrono::seconds>(time));
  std::string text = FormatTime(time);
  text.pop_back();  // the Z
  return fmt::format("{}.{:03}Z", text, millis.count());
}

void XmlWriter::Open(std::string_view name, std::string_view space) {
  out_ += '<';
  out_ += name;
  if (!space.empty()) out_ += fmt::format(" xmlns=\"{}\"", space);
  out_ += '>';
}

void XmlWriter::Close(std::string_view name) {
  out_ += "</";
  out_ += name;
  out_ += '>';
}

void XmlWriter::Text(std::string_view name, std::string_view text) {
  Open(name, "");
  out_ += EscapeXml(text);
  Close(name);
}

void XmlWriter::TextIfAny(std::string_view name, std::string_view text) {
  if (!text.empty()) Text(name, text);
}

void XmlWriter::Number(std::string_view name, std::int64_t number) {
  Text(name, std::to_string(number));
}

void XmlWriter::Flag(std::string_view name, bool flag) { Text(name, flag ? "true" : "false"); }

void XmlWriter::Time(std::string_view name, WallTime time) { Text(name, FormatMilliTime(time)); }

}  // namespace tahoma::controller::ec2
