#include "controller/apiserver/schema/schema_table.h"

#include <algorithm>
#include <charconv>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

using Type = Schema::Type;
using Types = std::map<std::string, SchemaPtr, std::less<>>;

struct FieldLine {
  int line = 0;
  std::string name;
  bool required = false;
  std::string type;
  std::vector<std::string> options;
  std::string description;
};

struct TypeLines {
  int line = 0;
  std::string package;
  std::map<std::string, std::string> imports;
  std::string description;
  std::vector<std::string> options;
  std::vector<FieldLine> fields;
};

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

struct Primitive {
  std::string_view word;
  Type type;
  std::string_view format;
};
constexpr Primitive kPrimitives[] = {
    {"string", Type::kString, ""},
    {"int32", Type::kInteger, "int32"},
    {"int64", Type::kInteger, "int64"},
    {"float", Type::kNumber, "double"},
    {"bool", Type::kBoolean, ""},
    {"quantity", Type::kQuantity, ""},
    {"intstr", Type::kIntOrString, ""},
    {"time", Type::kString, "date-time"},
    {"microtime", Type::kString, "date-time"},
    {"bytes", Type::kString, "byte"},
};

// Turns lines into types, resolving names on demand.
class Resolver {
 public:
  absl::Status Read(std::string_view table);
  absl::StatusOr<Types> ResolveAll();

 private:
  absl::Status ReadLine(std::string_view line);
  absl::Status ReadType(std::string_view head, std::string_view description);
  absl::Status ReadField(std::string_view head, std::string_view description);
  absl::StatusOr<SchemaPtr> ResolveType(const std::string& name);
  absl::StatusOr<std::shared_ptr<Schema>> ResolveUse(const TypeLines& in, std::string_view type,
                                                     int line);
  absl::Status AddField(const TypeLines& in, const FieldLine& field, Schema& object);

  int line_ = 0;
  std::string package_;
  std::map<std::string, std::string> imports_;
  TypeLines* current_ = nullptr;
  std::map<std::string, TypeLines> lines_;
  std::map<std::string, bool> open_;  // being resolved: a second visit is recursion
  Types done_;
};

absl::Status Resolver::Read(std::string_view table) {
  line_ = 0;
  package_.clear();
  imports_.clear();
  current_ = nullptr;
  while (!table.empty()) {
    const auto end = std::min(table.find('\n'), table.size());
    ++line_;
    TAHOMA_RETURN_IF_ERROR(ReadLine(table.substr(0, end)));
    table.remove_prefix(std::min(end + 1, table.size()));
  }
  return absl::OkStatus();
}

absl::Status Resolver::ReadLine(std::string_view line) {
  if (line.empty() || line.front() == '#') return absl::OkStatus();
  const auto colon = line.find(" : ");
  const std::string_view head = line.substr(0, colon);
  const std::string_view description =
      colon == std::string_view::npos ? std::string_view() : line.substr(colon + 3);
  if (head.starts_with("  ")) return ReadField(head, description);
  const std::vector<std::string> words = Split(head, ' ');
  if (words.size() == 2 && words[0] == "package") {
    package_ = words[1];
    return absl::OkStatus();
  }
  if (words.size() == 3 && words[0] == "import") {
    imports_[words[1]] = words[2];
    return absl::OkStatus();
  }
  if (words.size() >= 2 && words[0] == "type") return ReadType(head, description);
  return InvalidArgument("{} line {}: expected package, import, type or a field, found \"{}\"",
                         package_, line_, line);
}

absl::Status Resolver::ReadType(std::string_view head, std::string_view description) {
  std::vector<std::string> words = Split(head, ' ');
  TypeLines& type = lines_[fmt::format("{}.{}", package_, words[1])];
  if (type.line != 0) return InvalidArgument("line {}: type {} twice", line_, words[1]);
  type.line = line_;
  type.package = package_;
  type.imports = imports_;
  type.description = description;
  type.options.assign(words.begin() + 2, words.end());
  current_ = &type;
  return absl::OkStatus();
}

absl::Status Resolver::ReadField(std::string_view head, std::string_view description) {
  std::vector<std::string> words = Split(head, ' ');
  if (current_ == nullptr || words.size() < 2) {
    return InvalidArgument("{} line {}: a field is \"  name type options : text\", found \"{}\"",
                           package_, line_, head);
  }
  FieldLine field;
  field.line = line_;
  field.name = words[0];
  field.type = words[1];
  if (field.name.ends_with('!')) {
    field.required = true;
    field.name.pop_back();
  }
  field.options.assign(words.begin() + 2, words.end());
  field.description = description;
  current_->fields.push_back(std::move(field));
  return absl::OkStatus();
}

absl::Status ApplyNumber(std::string_view word, std::string_view value, Schema& schema) {
  std::int64_t number = 0;
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size()) {
    return InvalidArgument("{}={}: expected an integer", word, value);
  }
  if (word == "min") {
    schema.minimum = static_cast<double>(number);
  } else if (word == "max") {
    schema.maximum = static_cast<double>(number);
  } else if (word == "minlen") {
    schema.min_length = number;
  } else if (word == "maxlen") {
    schema.max_length = number;
  } else if (word == "maxitems") {
    schema.max_items = number;
  } else {
    return InvalidArgument("unknown option \"{}\"", word);
  }
  return absl::OkStatus();
}

absl::Status ApplyOption(std::string_view option, Schema& schema) {
  const auto equals = option.find('=');
  const std::string_view word = option.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : option.substr(equals + 1);
  if (word == "listmap") {
    schema.list_type = Schema::ListType::kMap;
    schema.list_map_keys = Split(value, ',');
  } else if (word == "set") {
    schema.list_type = Schema::ListType::kSet;
  } else if (word == "atomic") {
    schema.atomic = true;
  } else if (word == "merge") {
    schema.patch_strategy = Schema::PatchStrategy::kMerge;
    schema.merge_key = value;
  } else if (word == "replace") {
    schema.patch_strategy = Schema::PatchStrategy::kReplaceObject;
  } else if (word == "message") {
    schema.typed_by_message = true;
  } else if (word == "retain") {
    schema.retain_keys = true;
  } else if (word == "enum") {
    for (const std::string& one : Split(value, '|')) schema.enumeration.emplace_back(one);
  } else if (word == "default") {
    Json parsed = TryParseJson(value);
    if (parsed.is_discarded()) return InvalidArgument("default {} is not JSON", value);
    schema.nullable = parsed.is_null();  // Go writes absent times so
    schema.default_value = std::make_shared<const Json>(std::move(parsed));
  } else {
    return ApplyNumber(word, value, schema);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Schema>> Resolver::ResolveUse(const TypeLines& in,
                                                             std::string_view type, int line) {
  auto use = std::make_shared<Schema>();
  if (type.starts_with("[]")) {
    TAHOMA_ASSIGN_OR_RETURN(use->items, ResolveUse(in, type.substr(2), line));
    use->type = Type::kArray;
    return use;
  }
  if (type.starts_with("map[string]")) {
    TAHOMA_ASSIGN_OR_RETURN(use->additional, ResolveUse(in, type.substr(11), line));
    use->type = Type::kObject;
    return use;
  }
  if (type == "any") {
    use->preserve_unknown = true;
    return use;
  }
  for (const Primitive& primitive : kPrimitives) {
    if (primitive.word != type) continue;
    use->type = primitive.type;
    use->format = primitive.format;
    return use;
  }
  std::string package = in.package;
  if (const auto dot = type.find('.'); dot != std::string_view::npos) {
    const auto import = in.imports.find(std::string(type.substr(0, dot)));
    if (import == in.imports.end()) {
      return InvalidArgument("{} line {}: no import for \"{}\"", in.package, line, type);
    }
    package = import->second;
    type.remove_prefix(dot + 1);
  }
  const std::string name = fmt::format("{}.{}", package, type);
  if (!lines_.contains(name)) {
    return InvalidArgument("{} line {}: unknown type {}", in.package, line, name);
  }
  TAHOMA_ASSIGN_OR_RETURN(const SchemaPtr named, ResolveType(name));
  use = std::make_shared<Schema>(*named);
  use->definition = named;
  return use;
}

absl::Status Resolver::AddField(const TypeLines& in, const FieldLine& field, Schema& object) {
  TAHOMA_ASSIGN_OR_RETURN(std::shared_ptr<Schema> schema, ResolveUse(in, field.type, field.line));
  if (!field.description.empty()) schema->description = field.description;
  for (const std::string& option : field.options) {
    TAHOMA_RETURN_IF_ERROR(
        Annotate(ApplyOption(option, *schema), fmt::format("{} line {}", in.package, field.line)));
  }
  if (!object.Add(field.name, std::move(schema))) {
    return InvalidArgument("{} line {}: field {} twice", in.package, field.line, field.name);
  }
  if (field.required) object.required.push_back(field.name);
  return absl::OkStatus();
}

absl::StatusOr<SchemaPtr> Resolver::ResolveType(const std::string& name) {
  if (const auto it = done_.find(name); it != done_.end()) return it->second;
  if (open_[name]) return InvalidArgument("type {} contains itself", name);
  open_[name] = true;
  const TypeLines& lines = lines_.at(name);
  auto schema = std::make_shared<Schema>();
  schema->type = Type::kObject;
  schema->name = name;
  schema->description = lines.description;
  for (const std::string& option : lines.options) {
    TAHOMA_RETURN_IF_ERROR(Annotate(ApplyOption(option, *schema), name));
  }
  for (const FieldLine& field : lines.fields) {
    TAHOMA_RETURN_IF_ERROR(AddField(lines, field, *schema));
  }
  done_.emplace(name, schema);
  return SchemaPtr(schema);
}

absl::StatusOr<Types> Resolver::ResolveAll() {
  for (const auto& [name, lines] : lines_) {
    TAHOMA_RETURN_IF_ERROR(ResolveType(name).status());
  }
  return std::move(done_);
}

}  // namespace

absl::StatusOr<std::map<std::string, SchemaPtr, std::less<>>> ParseSchemaTables(
    const std::vector<std::string_view>& tables) {
  Resolver resolver;
  for (const std::string_view table : tables) TAHOMA_RETURN_IF_ERROR(resolver.Read(table));
  return resolver.ResolveAll();
}

}  // namespace tahoma::controller::apiserver
