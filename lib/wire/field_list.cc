#include "lib/wire/field_list.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "lib/base/json.h"

namespace tahoma::wire {
namespace {

constexpr std::size_t kHexDigits = 16;
constexpr std::size_t kFieldNameBytesMost = 16;

}  // namespace

void FieldWriter::Put(std::string_view key, std::int64_t value) {
  object_[std::string(key)] = value;
}

void FieldWriter::Bool(std::string_view key, bool value, Need) {
  object_[std::string(key)] = value;
}

void FieldWriter::String(std::string_view key, std::string_view value, std::size_t min_bytes,
                         std::size_t, Need need) {
  if (need == kRequired || !value.empty() || min_bytes == 0) object_[std::string(key)] = value;
}

void FieldWriter::Hex(std::string_view key, std::uint64_t value) {
  object_[std::string(key)] = fmt::format("{:016x}", value);
}

void FieldWriter::Strings(std::string_view key, const std::vector<std::string>& values, std::size_t,
                          std::size_t) {
  object_[std::string(key)] = values;
}

void FieldWriter::PutInts(std::string_view key, const std::vector<std::int64_t>& values) {
  object_[std::string(key)] = values;
}

Json& FieldWriter::PutObject(std::string_view key) {
  return object_[std::string(key)] = Json::object();
}

Json& FieldWriter::Append(std::string_view key) {
  Json& list = object_[std::string(key)];
  list.push_back(Json::object());
  return list.back();
}

void FieldReader::Hex(std::string_view key, std::uint64_t& value) {
  const std::string text = fields_.String(key, kHexDigits, kHexDigits);
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value, 16);
  if (error != std::errc() || end != last) {
    fields_.Fail(InvalidArgument("{} must be {} hex digits", fields_.Path(key), kHexDigits));
  }
}

std::size_t FieldReader::NameIndex(std::string_view key,
                                   const std::vector<std::string_view>& names) {
  const std::string text = fields_.String(key, 1, kFieldNameBytesMost);
  const auto found = std::ranges::find(names, text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  fields_.Fail(InvalidArgument("{} is \"{}\"; expected one of {}", fields_.Path(key), text,
                               fmt::join(names, ", ")));
  return 0;
}

void FieldReader::Strings(std::string_view key, std::vector<std::string>& values,
                          std::size_t max_count, std::size_t max_bytes) {
  values.clear();
  for (const Json& item : fields_.Array(key, max_count)) {
    if (!item.is_string() || item.get_ref<const std::string&>().size() > max_bytes) {
      fields_.Fail(InvalidArgument("{} must hold strings of at most {} bytes", fields_.Path(key),
                                   max_bytes));
      return;
    }
    values.push_back(item.get<std::string>());
  }
}

std::vector<std::int64_t> FieldReader::ReadInts(std::string_view key, std::size_t min_count,
                                                std::size_t max_count, std::int64_t min,
                                                std::int64_t max) {
  std::vector<std::int64_t> numbers;
  const Json& items = fields_.Array(key, max_count);
  for (const Json& item : items) {
    const bool fits = item.is_number_integer() &&
                      (!item.is_number_unsigned() || item.get<std::uint64_t>() <= INT64_MAX);
    if (!fits || item.get<std::int64_t>() < min || item.get<std::int64_t>() > max) break;
    numbers.push_back(item.get<std::int64_t>());
  }
  if (numbers.size() == items.size() && numbers.size() >= min_count) return numbers;
  const std::string count = min_count == 0 ? "" : fmt::format("{} ", min_count);
  fields_.Fail(InvalidArgument("{} must hold {}whole numbers from {} to {}", fields_.Path(key),
                               count, min, max));
  return {};
}

void FieldReader::Ascending(std::string_view key, std::vector<int>& values, int max) {
  values.clear();
  for (const Json& item : fields_.Array(key, static_cast<std::size_t>(max) + 1)) {
    const std::int64_t value = item.is_number_integer() ? item.get<std::int64_t>() : -1;
    if (value < 0 || value > max || (!values.empty() && value <= values.back())) {
      fields_.Fail(InvalidArgument("{} must hold ascending whole numbers from 0 to {}",
                                   fields_.Path(key), max));
      values.clear();
      return;
    }
    values.push_back(static_cast<int>(value));
  }
}

void FieldReader::ForEach(std::string_view key, std::size_t max_count,
                          absl::FunctionRef<void(Fields&)> read) {
  std::size_t index = 0;
  for (const Json& item : fields_.Array(key, max_count)) {
    Fields object(item, fmt::format("{}[{}]", fields_.Path(key), index++));
    read(object);
    fields_.Fail(object.status());
    if (!object.status().ok()) return;
  }
}

void FieldReader::IfThere(std::string_view key, absl::FunctionRef<void(Fields&)> read) {
  const Json* found = fields_.Object(key);
  if (found == nullptr) return;
  Fields object(*found, fields_.Path(key));
  read(object);
  fields_.Fail(object.status());
}

std::string WriteText(absl::FunctionRef<void(FieldWriter&)> write) {
  Json object = Json::object();
  FieldWriter list(object);
  write(list);
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::Status ReadText(std::string_view text, std::string_view where,
                      absl::FunctionRef<void(FieldReader&)> read) {
  TAHOMA_ASSIGN_OR_RETURN(const Json object, ReadJson(text, where));
  Fields fields(object, std::string(where));
  FieldReader list(fields);
  read(list);
  return fields.status();
}

}  // namespace tahoma::wire
