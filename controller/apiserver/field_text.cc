#include "controller/apiserver/field_text.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "lib/base/check.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller {
namespace {

using Json = nlohmann::json;

void AppendFields(const FieldSet& set, std::string& out) {
  out += '{';
  if (set.member && !set.children.empty()) out += R"(".":{})";  // before every edge in their order
  for (const auto& [edge, child] : set.children) {
    if (out.back() != '{') out += ',';
    kube::AppendJsonString(edge, out);
    out += ':';
    AppendFields(child, out);
  }
  out += '}';
}

// Reads what AppendFields wrote: objects in objects, without spaces.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  // Calls each(edge) for every name of the object that begins here, until it returns false; each
  // reads or skips what the name leads to. `edge` lives until the next reading.
  template <typename Each>
  void ReadObject(const Each& each) {
    Take('{');
    while (text_.front() != '}') {
      const std::string_view edge = ReadName();
      Take(':');
      if (!each(edge)) return;
      if (text_.front() == ',') Take(',');
    }
    Take('}');
  }

  void SkipObject() {
    int depth = 0;
    do {
      const char c = text_.front();
      if (c == '"') {
        text_.remove_prefix(NameSize());
        continue;
      }
      depth += c == '{' ? 1 : c == '}' ? -1 : 0;
      text_.remove_prefix(1);
    } while (depth > 0);
  }

  bool AtEmptyObject() const { return text_.starts_with("{}"); }

 private:
  void Take(char wanted) {
    TAHOMA_CHECK(!text_.empty() && text_.front() == wanted);
    text_.remove_prefix(1);
  }

  // With its quotes.
  std::size_t NameSize() const {
    std::size_t at = 1;
    while (text_[at] != '"') at += text_[at] == '\\' ? 2U : 1U;
    return at + 1;
  }

  std::string_view ReadName() {
    const std::size_t size = NameSize();
    const std::string_view quoted = text_.substr(0, size);
    text_.remove_prefix(size);
    if (quoted.find('\\') == std::string_view::npos) return quoted.substr(1, size - 2);
    unescaped_ = Json::parse(quoted).get<std::string>();
    return unescaped_;
  }

  std::string_view text_;
  std::string unescaped_;
};

FieldSet ReadSet(Reader& reader) {
  FieldSet set;
  set.member = reader.AtEmptyObject();
  reader.ReadObject([&](std::string_view edge) {
    if (edge == ".") {
      set.member = true;
      reader.SkipObject();
    } else {
      FieldSet& child = set.children.try_emplace(std::string(edge)).first->second;
      child = ReadSet(reader);
    }
    return true;
  });
  return set;
}

bool HasAnyAt(Reader& reader, const FieldSet& set) {
  if (set.member && reader.AtEmptyObject()) return true;
  bool found = false;
  reader.ReadObject([&](std::string_view edge) {
    const auto child = set.children.find(edge);
    if (edge == "." && set.member) {
      found = true;
    } else if (child != set.children.end()) {
      found = HasAnyAt(reader, child->second);
    } else {
      reader.SkipObject();
    }
    return !found;
  });
  return found;
}

std::string_view TextOf(const Json& fields) {
  const auto& bytes = fields.get_binary();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <typename Change>
void ForEachFields(Json& object, const Change& change) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return;
  const auto list = metadata->find("managedFields");
  if (list == metadata->end() || !list->is_array()) return;
  for (Json& entry : *list) {
    if (!entry.is_object()) continue;
    const auto fields = entry.find("fieldsV1");
    if (fields != entry.end()) change(*fields);
  }
}

}  // namespace

Json FieldText(const FieldSet& set) {
  std::string text;
  AppendFields(set, text);
  return Json::binary(Json::binary_t::container_type(text.begin(), text.end()));
}

FieldSet FieldsIn(const Json& fields) {
  if (!fields.is_binary()) return FieldSet::FromJson(fields);
  Reader reader(TextOf(fields));
  if (reader.AtEmptyObject()) return {};  // as an object: nothing, not the root
  return ReadSet(reader);
}

bool HasAnyOf(const Json& fields, const FieldSet& set) {
  if (!fields.is_binary()) return false;
  Reader reader(TextOf(fields));
  return !reader.AtEmptyObject() && HasAnyAt(reader, set);
}

void CompactFields(Json& object) {
  ForEachFields(object, [](Json& fields) {
    if (fields.is_object()) fields = FieldText(FieldSet::FromJson(fields));
  });
}

void ExpandFields(Json& object) {
  ForEachFields(object, [](Json& fields) {
    if (fields.is_binary()) fields = Json::parse(TextOf(fields));
  });
}

}  // namespace tahoma::controller
