#include "controller/apiserver/merge/field_text.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/processor_budget.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller::apiserver {
namespace {

Json AsValue(const std::string& text) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  return Json::binary(Json::binary_t::container_type(bytes, bytes + text.size()));
}

// Appends the name of a member, behind the earlier members of the object in `out`.
void AppendEdge(const std::string& edge, std::string& out) {
  if (out.back() != '{') out += ',';
  kube::AppendJsonString(edge, out);
  out += ':';
}

void AppendFields(const FieldSet& set, std::string& out) {
  out += '{';
  if (set.member && !set.children.empty()) out += R"(".":{})";  // sorts before every edge
  for (const auto& [edge, child] : set.children) {
    AppendEdge(edge, out);
    AppendFields(child, out);
  }
  out += '}';
}

// Writes the fields of a new object as AppendFields would their set.
class AddedFields {
 public:
  // Appends the fields that `after` has and `before` has not; appends nothing and returns false
  // when there are none.
  bool Append(const Schema& schema, const Json& before, const Json& after,
              const FieldSet* unowned) {
    if (before == after) return false;
    if (MergesAsMap(schema, before) && MergesAsMap(schema, after)) {
      return AppendMembers(schema, before, after, unowned);
    }
    if (MergesAsList(schema, before) && MergesAsList(schema, after)) {
      text_ += '{';
      AppendItems(schema, after);
      text_ += '}';
    } else {
      text_ += "{}";
    }
    return true;
  }

  // Null when nothing was written.
  Json Text() const {
    if (!distinct_) return Json(Json::value_t::discarded);
    return text_.empty() ? Json() : AsValue(text_);
  }

 private:
  bool AppendMembers(const Schema& schema, const Json& before, const Json& after,
                     const FieldSet* unowned) {
    const std::size_t start = text_.size();
    text_ += '{';
    for (const auto& [name, value] : MembersOf(after)) {
      const std::string edge = "f:" + name;
      const FieldSet* below = ChildOf(unowned, name);
      if (below != nullptr && below->member && edge != "f:metadata") continue;
      const Json* old = FindMember(before, name);
      const std::size_t before_edge = text_.size();
      AppendEdge(edge, text_);
      if (old == nullptr) {
        AppendAll(FieldOf(schema, name), value);
      } else if (!Append(FieldOf(schema, name), *old, value, below)) {
        text_.resize(before_edge);
      }
    }
    text_ += '}';
    const bool any = text_.size() > start + 2;
    if (!any) text_.resize(start);
    return any;
  }

  // Appends a value and everything below it.
  void AppendAll(const Schema& schema, const Json& value) {
    ProcessorBudget::Spend();
    const bool is_map = MergesAsMap(schema, value);
    if ((!is_map && !MergesAsList(schema, value)) || value.empty()) {
      text_ += "{}";
      return;
    }
    text_ += R"({".":{})";
    if (is_map) {
      for (const auto& [name, member] : MembersOf(value)) {
        AppendEdge("f:" + name, text_);
        AppendAll(FieldOf(schema, name), member);
      }
    } else {
      AppendItems(schema, value);
    }
    text_ += '}';
  }

  void AppendItems(const Schema& schema, const Json& list) {
    std::vector<std::pair<std::string, const Json*>> items;
    for (const Json& item : list) items.emplace_back(ItemEdge(schema, item), &item);
    std::sort(items.begin(), items.end());
    const std::string* last = nullptr;
    for (const auto& [edge, item] : items) {
      distinct_ = distinct_ && (last == nullptr || *last != edge);
      last = &edge;
      AppendEdge(edge, text_);
      AppendAll(ItemOf(schema), *item);
    }
  }

  std::string text_;
  bool distinct_ = true;
};

// Reads the text of AppendFields: objects in objects, without spaces.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  // Calls each(edge) for every name of the object that begins here, until `each` returns false;
  // `each` reads or skips the name's value. `edge` lives until the next reading.
  template <typename Each>
  void ReadObject(const Each& each) {
    Consume('{');
    while (text_.front() != '}') {
      const std::string_view edge = ReadName();
      Consume(':');
      if (!each(edge)) return;
      if (text_.front() == ',') Consume(',');
    }
    Consume('}');
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
  void Consume(char wanted) {
    TAHOMA_CHECK(!text_.empty() && text_.front() == wanted);
    text_.remove_prefix(1);
  }

  // The size includes the quotes.
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
    unescaped_ = ParseJson(quoted).get<std::string>();
    return unescaped_;
  }

  std::string_view text_;
  std::string unescaped_;
};

FieldSet ReadSet(Reader& reader) {
  ProcessorBudget::Spend();
  FieldSet set;
  set.member = reader.AtEmptyObject();
  reader.ReadObject([&](std::string_view edge) {
    if (edge == ".") {
      set.member = true;
      reader.SkipObject();
    } else {
      // Added before the child is read: `edge` ends with the reading.
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

// Changes the fields of the entries of managedFields for which `wanted` holds.
template <typename Wanted, typename Change>
void ChangeFields(Json& object, const Wanted& wanted, const Change& change) {
  const Json* metadata = FindMember(object, "metadata");
  const Json* list = metadata == nullptr ? nullptr : FindMember(*metadata, "managedFields");
  if (list == nullptr || !list->is_array()) return;
  const auto changes = [&](const Json& entry) {
    const Json* fields = FindMember(entry, "fieldsV1");
    return fields != nullptr && wanted(*fields);
  };
  if (std::none_of(list->begin(), list->end(), changes)) return;
  for (Json& entry : object["metadata"]["managedFields"]) {
    if (!changes(entry)) continue;
    Json& fields = entry["fieldsV1"];
    fields = change(fields);
  }
}

}  // namespace

Json FieldText(const FieldSet& set) {
  constexpr std::size_t kUsualBytes = 512;
  std::string text;
  text.reserve(kUsualBytes);
  AppendFields(set, text);
  return AsValue(text);
}

Json AddedText(const Schema& schema, const Json& empty, const Json& object,
               const FieldSet& unowned) {
  AddedFields fields;
  fields.Append(schema, empty, object, &unowned);
  return fields.Text();
}

FieldSet FieldsIn(const Json& fields) {
  if (!fields.is_binary()) return FieldSet::FromJson(fields);
  Reader reader(TextOf(fields));
  if (reader.AtEmptyObject()) return {};  // as an object: nothing, not the root
  return ReadSet(reader);
}

bool HasAnyOf(const Json& fields, const FieldSet& set) {
  if (!fields.is_binary() || set.empty()) return false;
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
      [](const Json& fields) { return ParseJson(TextOf(fields)); });
}

}  // namespace tahoma::controller::apiserver
