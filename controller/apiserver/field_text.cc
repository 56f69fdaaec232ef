#include "controller/apiserver/field_text.h"

#include <string_view>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller {
namespace {

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
    const std::size_t end = text_.find('"', 1);
    if (text_.substr(0, end).find('\\') == std::string_view::npos) return end + 1;
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
      // Before what is below is read: `edge` ends with it.
      FieldSet& child = set.children.emplace(std::string(edge)).first->second;
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

// Changes the fields of all entries of managedFields for which `wanted` holds.
template <typename Wanted, typename Change>
void ChangeFields(Json& object, const Wanted& wanted, const Change& change) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return;
  const auto list = metadata->find("managedFields");
  if (list == metadata->end() || !list->is_array()) return;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json& entry = (*list)[i];
    if (!entry.is_object()) continue;
    const auto fields = entry.find("fieldsV1");
    if (fields == entry.end() || !wanted(*fields)) continue;
    Json changed = change(*fields);
    object["metadata"]["managedFields"][i]["fieldsV1"] = std::move(changed);
    // The list may have become the object's own.
    return ChangeFields(object, wanted, change);
  }
}

}  // namespace

Json FieldText(const FieldSet& set) {
  constexpr std::size_t kUsualBytes = 512;
  std::string text;
  text.reserve(kUsualBytes);
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
  ChangeFields(
      object, [](const Json& fields) { return fields.is_object(); },
      [](const Json& fields) { return FieldText(FieldSet::FromJson(fields)); });
}

void ExpandFields(Json& object) {
  ChangeFields(
      object, [](const Json& fields) { return fields.is_binary(); },
      [](const Json& fields) { return Json::parse(TextOf(fields)); });
}

}  // namespace tahoma::controller
