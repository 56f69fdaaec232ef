// Writes XML: elements in elements, and text that is escaped.
//
// Scope: what EC2's answers need. Nothing here reads XML. Names come from our own source and are
// not escaped.
//
// Thread safety: one thread per object.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/clock.h"

namespace tahoma::controller::ec2 {

// Escapes the characters that XML 1.0 reserves. A byte that is not UTF-8, and a character that no
// document may hold, becomes U+FFFD.
std::string EscapeXml(std::string_view text);

// "2026-11-21T11:30:00.000Z", as EC2 writes times.
std::string FormatMilliTime(WallTime time);

class XmlWriter {
 public:
  template <typename Content>
  void Element(std::string_view name, Content&& content) {
    Element(name, "", std::forward<Content>(content));
  }
  // `space` is the element's namespace.
  template <typename Content>
  void Element(std::string_view name, std::string_view space, Content&& content) {
    Open(name, space);
    content();
    Close(name);
  }
  void Text(std::string_view name, std::string_view text);
  // Nothing for an empty text: a field that an object does not have.
  void TextIfAny(std::string_view name, std::string_view text);
  void Number(std::string_view name, std::int64_t number);
  void Flag(std::string_view name, bool flag);
  void Time(std::string_view name, WallTime time);
  // <name><item>…</item>…</name>: `each` writes what stands in the item of a value.
  template <typename Values, typename Each>
  void Items(std::string_view name, const Values& values, Each&& each) {
    Open(name, "");
    for (const auto& value : values) {
      Open("item", "");
      each(value);
      Close("item");
    }
    Close(name);
  }
  // <name><item>text</item>…</name>
  template <typename Values>
  void TextItems(std::string_view name, const Values& values) {
    Open(name, "");
    for (const auto& value : values) Text("item", value);
    Close(name);
  }

  std::string Finish() && { return std::move(out_); }

 private:
  void Open(std::string_view name, std::string_view space);
  void Close(std::string_view name);

  std::string out_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
};

}  // namespace tahoma::controller::ec2
