#include "lib/base/json_part.h"

#include <cstdint>
#include <string>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/json_cursor.h"

namespace tahoma {
namespace {

const JsonPart kWhole;

const JsonPart* PartOf(const JsonPart& part, std::string_view name) {
  if (part.members.empty()) return &kWhole;
  for (const JsonPart::Member& member : part.members) {
    if (member.name == name) return &member.part;
  }
  return nullptr;
}

// Makes values; refuses what JsonCursor refuses.
class PartReader {
 public:
  explicit PartReader(std::string_view text) : cursor_(text) {}

  bool Read(const JsonPart& part, Json& value) { return Value(part, value) && cursor_.AtEnd(); }

 private:
  bool Value(const JsonPart& part, Json& value) {
    if (part.keep == JsonPart::Keep::kText) return Text(value);
    switch (cursor_.Peek()) {
      case '{':
        return Object(part, value);
      case '[':
        return Array(part, value);
      case '"':
        return String(value);
      default:
        return Word(value);
    }
  }

  bool Object(const JsonPart& part, Json& value) {
    if (++depth_ > JsonCursor::kDepthMost) return false;
    value = Json::object();
    auto& members = value.get_ref<Json::object_t&>();
    const bool good = cursor_.Object([&](std::string_view key) {
      const JsonPart* const below = PartOf(part, key);
      if (below == nullptr) return cursor_.Skip();
      const auto [member, is_new] = members.emplace(std::string(key));
      return is_new && Value(*below, member->second);  // of two members TryParseJson takes the last
    });
    --depth_;
    return good;
  }

  bool Array(const JsonPart& part, Json& value) {
    if (++depth_ > JsonCursor::kDepthMost) return false;
    value = Json::array();
    auto& items = value.get_ref<Json::array_t&>();
    const bool good = cursor_.Array([&] { return Value(part, items.emplace_back()); });
    --depth_;
    return good;
  }

  bool Text(Json& value) {
    cursor_.Peek();  // the text begins after the spaces
    const char* const begin = cursor_.place();
    if (!cursor_.Skip()) return false;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(begin);
    value = Json::binary(Json::binary_t::container_type(bytes, bytes + (cursor_.place() - begin)));
    return true;
  }

  bool String(Json& value) {
    const JsonCursor before = cursor_;
    if (std::string_view plain; cursor_.PlainText(plain)) {
      value = std::string(plain);
      return true;
    }
    cursor_ = before;
    return cursor_.SkipText() && Parse(before.place(), value);
  }

  bool Word(Json& value) {
    std::string_view word;
    return cursor_.Word(word) && Parse(word.data(), value);
  }

  // Makes the value of the text from `begin` to the cursor.
  bool Parse(const char* begin, Json& value) {
    value = TryParseJson({begin, static_cast<std::size_t>(cursor_.place() - begin)});
    return !value.is_discarded();
  }

  JsonCursor cursor_;
  int depth_ = 0;
};

}  // namespace

Json TryParseJsonPart(std::string_view text, const JsonPart& part) {
  Json value;
  if (PartReader(text).Read(part, value)) return value;
  return TryParseJson(text);
}

}  // namespace tahoma
