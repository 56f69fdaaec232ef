#include "lib/config/spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/config/duration.h"
#include "lib/config/size.h"

namespace tahoma::config {
namespace {

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }

std::string Shown(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return "nothing";
    case Value::Kind::kScalar:
      return fmt::format("\"{}\"", value.scalar.substr(0, 200));
    case Value::Kind::kList:
      return "a list";
    case Value::Kind::kMap:
      return "a map";
  }
  return "";
}

absl::Status Wrong(const Value& value, const Where& where, std::string_view kind) {
  return where.Error(value,
                     fmt::format("{} is not what belongs here; expected {}", Shown(value), kind));
}

// A decimal integer with an optional binary unit.
std::optional<std::int64_t> ReadInt(std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest == text.data()) return std::nullopt;
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  const std::optional<int> shift = UnitShift(unit);
  std::int64_t product = 0;
  if (!shift || __builtin_mul_overflow(number, std::int64_t{1} << *shift, &product)) {
    return std::nullopt;
  }
  return product;
}

// Whether the key and all below it are refused.
bool IsGone(const Field& field) {
  return field.gone || (field.section && std::ranges::all_of(field.section->fields(), IsGone));
}

absl::Status CheckChoice(const Value& value, const Where& where,
                         const std::vector<std::string>& choices) {
  if (choices.empty() || std::ranges::find(choices, value.scalar) != choices.end()) {
    return absl::OkStatus();
  }
  std::vector<std::string> shown = choices;
  std::erase(shown, "");
  return Wrong(value, where, fmt::format("one of {}", fmt::join(shown, ", ")));
}

std::string IntKind(const IntRange& range) {
  if (range.max == std::numeric_limits<std::int64_t>::max()) {
    return range.min == std::numeric_limits<std::int64_t>::min()
               ? std::string("integer")
               : fmt::format("integer, at least {}", range.min);
  }
  return fmt::format("integer {} to {}", range.min, range.max);
}

}  // namespace

absl::Status Where::Error(const Value& value, std::string_view what) const {
  if (source.empty()) return InvalidArgument("{}: {}", path, what);
  if (path.empty()) return InvalidArgument("{}:{}: {}", source, value.line, what);
  return InvalidArgument("{}:{}: {}: {}", source, value.line, path, what);
}

Where Where::Below(std::string_view key) const {
  return {.source = source,
          .path = path.empty() ? std::string(key) : fmt::format("{}.{}", path, key)};
}

Where Where::At(std::size_t index) const {
  return {.source = source, .path = fmt::format("{}[{}]", path, index)};
}

Field& Fields::Add(std::string key, std::string description) {
  for (const Field& field : fields_) TAHOMA_CHECK(field.key != key);
  Field& field = fields_.emplace_back();
  field.key = std::move(key);
  field.description = std::move(description);
  return field;
}

Fields& Fields::Bool(std::string key, bool* value, std::string description) {
  Field& field = Add(std::move(key), std::move(description));
  field.kind = "true or false";
  field.default_text = *value ? "true" : "false";
  field.form = FlagForm::kBool;
  field.set = [value](const Value& given, const Where& where) {
    if (given.kind != Value::Kind::kScalar || given.quoted ||
        (given.scalar != "true" && given.scalar != "false")) {
      return Wrong(given, where, "true or false");
    }
    *value = given.scalar == "true";
    return absl::OkStatus();
  };
  return *this;
}

Fields& Fields::String(std::string key, std::string* value, std::string description,
                       std::vector<std::string> choices) {
  Field& field = Add(std::move(key), std::move(description));
  std::vector<std::string> shown = choices;
  std::erase(shown, "");
  field.kind = choices.empty() ? "string" : fmt::format("{}", fmt::join(shown, " | "));
  field.default_text = *value;
  field.choices = choices;
  field.set = [value, choices](const Value& given, const Where& where) {
    if (given.kind != Value::Kind::kScalar) return Wrong(given, where, "a string");
    TAHOMA_RETURN_IF_ERROR(CheckChoice(given, where, choices));
    *value = given.scalar;
    return absl::OkStatus();
  };
  return *this;
}

Fields& Fields::Gone(std::string key, std::string what_is_so) {
  Field& field = Add(std::move(key), "");
  field.gone = true;
  field.set = [what = std::move(what_is_so)](const Value& given, const Where& where) {
    return where.Error(given, fmt::format("{}; remove {}", what, where.path));
  };
  return *this;
}

Fields& Fields::AddInt(std::string key, std::int64_t default_value,
                       std::function<void(std::int64_t)> store, IntRange range,
                       std::string description) {
  Field& field = Add(std::move(key), std::move(description));
  field.kind = IntKind(range);
  field.default_text = fmt::format("{}", default_value);
  field.set = [store = std::move(store), range, kind = field.kind](const Value& given,
                                                                   const Where& where) {
    if (given.kind != Value::Kind::kScalar || given.quoted) return Wrong(given, where, kind);
    const std::optional<std::int64_t> number = ReadInt(given.scalar);
    if (!number) {
      const bool fraction = given.scalar.find('.') != std::string::npos;
      return Wrong(given, where, kind + (fraction ? ", whole: for example 1536M for 1.5G" : ""));
    }
    if (*number < range.min || *number > range.max) {
      return where.Error(given,
                         fmt::format("{} is out of bounds; expected {}", given.scalar, kind));
    }
    store(*number);
    return absl::OkStatus();
  };
  return *this;
}

Fields& Fields::Number(std::string key, double* value, NumberRange range, std::string description) {
  Field& field = Add(std::move(key), std::move(description));
  field.kind = range.max == std::numeric_limits<double>::max()
                   ? fmt::format("number, at least {}", range.min)
                   : fmt::format("number {} to {}", range.min, range.max);
  field.default_text = fmt::format("{}", *value);
  field.set = [value, range, kind = field.kind](const Value& given, const Where& where) {
    double number = 0;
    const char* end = given.scalar.data() + given.scalar.size();
    const auto [rest, error] = std::from_chars(given.scalar.data(), end, number);
    if (given.kind != Value::Kind::kScalar || given.quoted || error != std::errc() || rest != end ||
        !std::isfinite(number)) {
      return Wrong(given, where, kind);
    }
    if (number < range.min || number > range.max) {
      return where.Error(given,
                         fmt::format("{} is out of bounds; expected {}", given.scalar, kind));
    }
    *value = number;
    return absl::OkStatus();
  };
  return *this;
}

Fields& Fields::Duration(std::string key, std::chrono::nanoseconds* value, DurationRange range,
                         std::string description) {
  Field& field = Add(std::move(key), std::move(description));
  field.kind =
      fmt::format("duration {} to {}", FormatDuration(range.min), FormatDuration(range.max));
  field.default_text = FormatDuration(*value);
  field.set = [value, range, kind = field.kind](const Value& given, const Where& where) {
    if (given.kind != Value::Kind::kScalar) return Wrong(given, where, kind);
    const auto duration = ParseDuration(given.scalar);
    if (!duration.ok()) return where.Error(given, Message(duration.status()));
    if (*duration < range.min || *duration > range.max) {
      return where.Error(given,
                         fmt::format("{} is out of bounds; expected {}", given.scalar, kind));
    }
    *value = *duration;
    return absl::OkStatus();
  };
  return *this;
}

Fields& Fields::Strings(std::string key, std::vector<std::string>* value, std::string description,
                        std::vector<std::string> choices) {
  Field& field = Add(std::move(key), std::move(description));
  field.kind =
      choices.empty() ? "list of strings" : fmt::format("list of {}", fmt::join(choices, " | "));
  field.default_text = fmt::format("{}", fmt::join(*value, ","));
  field.form = FlagForm::kWords;
  field.set = [value, choices](const Value& given, const Where& where) {
    if (given.kind != Value::Kind::kList) return Wrong(given, where, "a list of strings");
    std::vector<std::string> read;
    for (std::size_t i = 0; i < given.items.size(); ++i) {
      const Value& item = given.items[i];
      if (item.kind != Value::Kind::kScalar) return Wrong(item, where.At(i), "a string");
      TAHOMA_RETURN_IF_ERROR(CheckChoice(item, where.At(i), choices));
      read.push_back(item.scalar);
    }
    *value = std::move(read);
    return absl::OkStatus();
  };
  return *this;
}

Fields& Fields::Map(std::string key, std::map<std::string, std::string>* value,
                    std::string description) {
  Field& field = Add(std::move(key), std::move(description));
  field.kind = "map of strings";
  std::vector<std::string> pairs;
  for (const auto& [name, text] : *value) pairs.push_back(fmt::format("{}={}", name, text));
  field.default_text = fmt::format("{}", fmt::join(pairs, ","));
  field.form = FlagForm::kPairs;
  field.set = [value](const Value& given, const Where& where) {
    if (given.kind != Value::Kind::kMap) return Wrong(given, where, "a map of strings");
    std::map<std::string, std::string> read;
    for (const auto& [name, entry] : given.entries) {
      if (entry.kind != Value::Kind::kScalar) return Wrong(entry, where.Below(name), "a string");
      read[name] = entry.scalar;
    }
    *value = std::move(read);
    return absl::OkStatus();
  };
  return *this;
}

Fields& Fields::Section(std::string key, std::string description,
                        const std::function<void(Fields&)>& declare) {
  auto section = std::make_shared<Fields>();
  declare(*section);
  Field& field = Add(std::move(key), std::move(description));
  field.kind = fmt::format("{{{}}}", section->KeyList());
  field.form = FlagForm::kNone;
  field.section = section;
  field.set = [section](const Value& given, const Where& where) {
    return section->Set(given, where);
  };
  return *this;
}

Fields& Fields::AddStructs(std::string key, std::string description, Value::Kind kind,
                           std::function<void()> clear,
                           std::function<Fields(const std::string& name)> append,
                           const std::string& keys) {
  const bool is_list = kind == Value::Kind::kList;
  Field& field = Add(std::move(key), std::move(description));
  field.kind = fmt::format(fmt::runtime(is_list ? "list of {{{}}}" : "map of {{{}}}"), keys);
  field.form = FlagForm::kYaml;
  field.set = [kind, is_list, clear = std::move(clear), append = std::move(append)](
                  const Value& given, const Where& where) {
    if (given.kind != kind) return Wrong(given, where, is_list ? "a list" : "a map");
    clear();
    for (std::size_t i = 0; i < given.items.size(); ++i) {
      TAHOMA_RETURN_IF_ERROR(append("").Set(given.items[i], where.At(i)));
    }
    for (const auto& [name, entry] : given.entries) {
      TAHOMA_RETURN_IF_ERROR(append(name).Set(entry, where.Below(name)));
    }
    return absl::OkStatus();
  };
  return *this;
}

std::string Fields::KeyList() const {
  std::vector<std::string_view> keys;
  for (const Field& field : fields_) {
    if (!IsGone(field)) keys.push_back(field.key);
  }
  return fmt::format("{}", fmt::join(keys, ", "));
}

absl::Status Fields::Set(const Value& map, const Where& where) const {
  if (map.kind == Value::Kind::kNull) return absl::OkStatus();
  if (map.kind != Value::Kind::kMap) {
    return Wrong(map, where, fmt::format("a map of {}", KeyList()));
  }
  for (const auto& [key, value] : map.entries) {
    const auto field = std::ranges::find(fields_, key, &Field::key);
    if (field == fields_.end()) {
      std::vector<std::string> known;
      for (const Field& f : fields_) known.push_back(f.key);
      const std::string nearest = Nearest(key, known);
      return where.Below(key).Error(
          value, nearest.empty() ? fmt::format("unknown key; known are {}", KeyList())
                                 : fmt::format("unknown key; did you mean \"{}\"?", nearest));
    }
    // A key without a value keeps its default, as in Kubernetes' own configuration files.
    if (value.kind == Value::Kind::kNull) continue;
    TAHOMA_RETURN_IF_ERROR(field->set(value, where.Below(key)));
  }
  return absl::OkStatus();
}

Spec& Spec::Word(std::string name, std::string* value, std::string description, Need need,
                 std::vector<std::string> choices) {
  positionals_.push_back(
      {std::move(name), std::move(description), need, value, std::move(choices)});
  return *this;
}

Spec& Spec::Words(std::string name, std::vector<std::string>* value, std::string description) {
  rest_ = std::make_shared<Positional>(
      Positional{std::move(name), std::move(description), Need::kOptional, nullptr, {}});
  rest_words_ = value;
  return *this;
}

Spec& Spec::Alias(std::string flag, std::string key) {
  aliases_.emplace_back(std::move(flag), std::move(key));
  return *this;
}

std::string FlagName(std::string_view key) {
  std::string name;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const bool starts_word = i > 0 && IsUpper(key[i]) &&
                             (IsLower(key[i - 1]) || (i + 1 < key.size() && IsLower(key[i + 1]))) &&
                             name.back() != '-';
    if (starts_word) name += '-';
    name += IsUpper(key[i]) ? static_cast<char>(key[i] - 'A' + 'a') : key[i];
  }
  return name;
}

std::string Nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestWord = 128;
  if (word.size() > kLongestWord) return "";
  std::string best;
  std::size_t best_distance = word.size() / 3 + 1;
  for (const std::string& candidate : candidates) {
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i + 1;
      for (std::size_t j = 0; j < candidate.size(); ++j) {
        const std::size_t changed = diagonal + (word[i] == candidate[j] ? 0 : 1);
        diagonal = row[j + 1];
        row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
      }
    }
    if (row.back() > best_distance || (row.back() == best_distance && !best.empty())) continue;
    best = candidate;
    best_distance = row.back();
  }
  return best;
}

}  // namespace tahoma::config
