#include "lib/kube/yaml.h"

#include <absl/cleanup/cleanup.h>
#include <yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"

namespace tahoma::kube {
namespace {

// The most members of one mapping: the work of filling their sorted table grows with their square.
constexpr std::size_t kYamlMembersMax = 50'000;

bool AllOf(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

// Reads the whole text as an integer in that base; null when it is none or too large.
Json ParseInteger(std::string_view digits, int base, bool negative) {
  std::uint64_t magnitude = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return nullptr;
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (!negative) {
    if (magnitude <= kMax) return static_cast<std::int64_t>(magnitude);
    return magnitude;
  }
  if (magnitude > kMax + 1) return nullptr;
  return static_cast<std::int64_t>(~magnitude + 1);
}

// Reads an integer as go-yaml does: decimal, 0x, 0o, 0b and a leading zero for octal.
Json ReadInteger(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.size() > 1 && text.front() == '0') {
    const char letter = text[1];
    if (letter == 'x' || letter == 'X') return ParseInteger(text.substr(2), 16, negative);
    if (letter == 'o' || letter == 'O') return ParseInteger(text.substr(2), 8, negative);
    if (letter == 'b' || letter == 'B') return ParseInteger(text.substr(2), 2, negative);
    if (AllOf(text, "01234567")) return ParseInteger(text.substr(1), 8, negative);
  }
  return AllOf(text, "0123456789") ? ParseInteger(text, 10, negative) : Json(nullptr);
}

// Reads "1.5", ".5", "1e3", "-2.E+4" and nothing else; JSON has no infinities.
Json ReadFloat(const std::string& text) {
  if (!AllOf(text, "0123456789.eE+-") || text.find_first_of("0123456789") == std::string::npos) {
    return nullptr;
  }
  std::string_view digits = text;
  if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
  // from_chars would take a second sign: "--2" is text.
  if (digits.starts_with('-')) return nullptr;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) {
    return nullptr;
  }
  if (text.front() == '-') value = -value;
  // Go writes it to JSON without a point, so that readers of that text take it for an integer.
  constexpr double kIntegers = 9.2e18;
  if (value == std::floor(value) && std::abs(value) < kIntegers) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

// Reads the booleans of YAML 1.1, all of which go-yaml reads as such.
std::optional<bool> ReadBoolean(std::string_view text) {
  constexpr std::array<std::string_view, 11> kTrue = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                                      "True", "TRUE", "on",  "On",  "ON"};
  constexpr std::array<std::string_view, 11> kFalse = {
      "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
  if (std::find(kTrue.begin(), kTrue.end(), text) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), text) != kFalse.end()) return false;
  return std::nullopt;
}

// Returns whether every underscore stands between two digits.
bool SeparatesDigits(std::string_view text) {
  const auto digit = [&](std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_' && (i == 0 || !digit(i - 1) || !digit(i + 1))) return false;
  }
  return true;
}

Json ReadPlain(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return nullptr;
  }
  if (const std::optional<bool> value = ReadBoolean(text)) return *value;
  const char first = text.front();
  const bool maybe_number =
      (first >= '0' && first <= '9') || first == '-' || first == '+' || first == '.';
  if (maybe_number) {
    std::string digits = text;
    // go-yaml is looser with a number that does not begin with a point.
    if (first != '.' || SeparatesDigits(text)) std::erase(digits, '_');
    if (Json value = ReadInteger(digits); !value.is_null()) return value;
    if (Json value = ReadFloat(digits); !value.is_null()) return value;
  }
  return text;
}

// Builds the JSON of one document from the parser's events. Throws absl::Status to stop early.
class Builder {
 public:
  Json Finish() { return std::move(root_); }

  void OnEvent(const yaml_event_t& event) {
    const std::size_t line = event.start_mark.line + 1;
    switch (event.type) {
      case YAML_ALIAS_EVENT:
        return OnAlias(line, TextOf(event.data.alias.anchor));
      case YAML_SCALAR_EVENT:
        return OnScalar(line, event);
      case YAML_SEQUENCE_START_EVENT:
        return Open(line, TextOf(event.data.sequence_start.anchor), Json::array());
      case YAML_MAPPING_START_EVENT:
        return Open(line, TextOf(event.data.mapping_start.anchor), Json::object());
      case YAML_SEQUENCE_END_EVENT:
        return Close();
      case YAML_MAPPING_END_EVENT:
        Merge();
        return Close();
      default:
        return;
    }
  }

 private:
  struct Level {
    std::size_t line;
    std::string anchor;  // empty: none
    Json value;
    Json merged;
    std::string key;
    bool has_key = false;
    bool merges = false;     // the key is <<
    std::size_t values = 1;  // the number of values in it, itself included
  };
  struct Anchored {
    Json value;
    std::size_t values;
  };

  [[noreturn]] static void Fail(std::size_t line, const std::string& what) {
    throw InvalidArgument("line {}: {}", line, what);
  }

  static std::string TextOf(const yaml_char_t* text) {
    return text == nullptr ? std::string() : reinterpret_cast<const char*>(text);
  }

  // Whether the scalar has neither quotes nor a tag.
  static bool IsPlain(const yaml_event_t& scalar) {
    return scalar.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && scalar.data.scalar.tag == nullptr;
  }

  static Json ReadScalar(std::size_t line, const yaml_event_t& event, std::string text) {
    constexpr std::string_view kTags = "tag:yaml.org,2002:";
    const std::string tag = TextOf(event.data.scalar.tag);
    if (tag.empty() ? !IsPlain(event) : tag == "tag:yaml.org,2002:str") return text;
    if (tag.empty() || tag.starts_with(kTags)) return ReadPlain(text);
    Fail(line, fmt::format("the tag {} is not used in Kubernetes manifests", tag));
  }

  void OnAlias(std::size_t line, const std::string& anchor) {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      Fail(line,
           fmt::format("the alias *{} stands inside what it names, or names nothing", anchor));
    }
    Place(line, "", found->second.value, found->second.values);
  }

  void OnScalar(std::size_t line, const yaml_event_t& event) {
    const auto& scalar = event.data.scalar;
    std::string text(reinterpret_cast<const char*>(scalar.value), scalar.length);
    const std::size_t weight = TextWeight(text);
    const bool merges = IsPlain(event) && text == "<<";
    const bool is_key = WantsKey();
    Json value = ReadScalar(line, event, std::move(text));
    if (is_key) return OpenKey(line, value, weight, merges);
    Place(line, TextOf(scalar.anchor), std::move(value), 1 + weight);
  }

  void Merge() {
    Level& level = open_.back();
    for (auto& [key, value] : level.merged.items()) {
      if (!level.value.contains(key)) level.value[key] = value;
    }
  }

  // Long text counts as several values: what aliases copy is bounded by its bytes too.
  static std::size_t TextWeight(const std::string& text) { return text.size() / 64; }

  void Count(std::size_t line, std::size_t values) {
    total_ += values;
    if (total_ > kYamlNodesMax) {
      Fail(line, fmt::format("more than {} values (aliases expand to too much)", kYamlNodesMax));
    }
  }

  // JSON's keys are text: the meaning of a plain scalar, written as Go does.
  void OpenKey(std::size_t line, const Json& key, std::size_t weight, bool merges) {
    if (key.is_null()) Fail(line, "a key is not text");
    Level& level = open_.back();
    level.key = key.is_string() ? key.get<std::string>() : key.dump();
    level.has_key = true;
    level.merges = merges;
    level.values += weight;
    Count(line, weight);
  }

  bool WantsKey() const {
    return !open_.empty() && open_.back().value.is_object() && !open_.back().has_key;
  }

  void Open(std::size_t line, std::string anchor, Json empty) {
    if (WantsKey()) Fail(line, "a key is not text");
    if (open_.size() >= static_cast<std::size_t>(kYamlDepthMax)) {
      Fail(line, fmt::format("nested deeper than {} levels", kYamlDepthMax));
    }
    Count(line, 1);
    // From here on the name is that of a value which is not whole.
    anchors_.erase(anchor);
    open_.push_back({.line = line,
                     .anchor = std::move(anchor),
                     .value = std::move(empty),
                     .merged = Json::object(),
                     .key = {}});
  }

  void Close() {
    Level level = std::move(open_.back());
    open_.pop_back();
    // The values in it were counted as they came.
    Place(level.line, level.anchor, std::move(level.value), level.values, false);
  }

  void Place(std::size_t line, const std::string& anchor, Json value, std::size_t values,
             bool count = true) {
    if (WantsKey()) Fail(line, "a key is not text");
    // A node with an anchor is kept a second time.
    Count(line, (count ? values : 0) + (anchor.empty() ? 0 : values));
    if (!anchor.empty()) anchors_.insert_or_assign(anchor, Anchored{value, values});
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& level = open_.back();
    level.values += values;
    if (level.value.is_array()) {
      level.value.push_back(std::move(value));
    } else {
      PlaceInMap(line, level, std::move(value));
    }
  }

  static void PlaceInMap(std::size_t line, Level& level, Json value) {
    level.has_key = false;
    if (level.merges) {
      if (!value.is_array()) value = Json::array({std::move(value)});
      for (const Json& one : value) {
        if (!one.is_object()) Fail(line, "a merge key (<<) needs a mapping, or a list of them");
        level.merged.insert(one.begin(), one.end());  // an existing member stays
        if (level.merged.size() > kYamlMembersMax) {
          Fail(line, fmt::format("more than {} members of one mapping", kYamlMembersMax));
        }
      }
      return;
    }
    if (level.value.contains(level.key)) {
      Fail(line, fmt::format("key \"{}\" already set in map", level.key));
    }
    if (level.value.size() + level.merged.size() >= kYamlMembersMax) {
      Fail(line, fmt::format("more than {} members of one mapping", kYamlMembersMax));
    }
    level.value[level.key] = std::move(value);
  }

  Json root_;
  std::vector<Level> open_;
  std::map<std::string, Anchored> anchors_;
  std::size_t total_ = 0;
};

// Reads the next event; what is wrong with the text instead.
absl::Status Next(yaml_parser_t& parser, yaml_event_t& event) {
  if (yaml_parser_parse(&parser, &event) != 0) return absl::OkStatus();
  const bool placed = parser.error != YAML_READER_ERROR && parser.error != YAML_MEMORY_ERROR;
  const std::size_t line = (placed ? parser.problem_mark : parser.mark).line + 1;
  return InvalidArgument("line {}: {}", line,
                         parser.problem == nullptr ? "there is no memory" : parser.problem);
}

absl::StatusOr<std::vector<Json>> Documents(yaml_parser_t& parser) {
  std::vector<Json> documents;
  std::size_t count = 0;
  Builder builder;
  for (bool more = true; more;) {
    yaml_event_t event{};
    TAHOMA_RETURN_IF_ERROR(Next(parser, event));
    const absl::Cleanup deleted = [&] { yaml_event_delete(&event); };
    more = event.type != YAML_STREAM_END_EVENT;
    if (event.type == YAML_DOCUMENT_START_EVENT) {
      if (++count > kYamlDocumentsMax) {
        return InvalidArgument("more than {} documents", kYamlDocumentsMax);
      }
      builder = Builder();
    } else if (event.type == YAML_DOCUMENT_END_EVENT) {
      if (Json document = builder.Finish(); !document.is_null()) {
        documents.push_back(std::move(document));
      }
    } else {
      builder.OnEvent(event);
    }
  }
  return documents;
}

}  // namespace

absl::StatusOr<std::vector<Json>> YamlDocuments(std::string_view text) {
  if (text.size() > kYamlBytesMax) {
    return InvalidArgument("the text has {} bytes; at most {} are read", text.size(),
                           kYamlBytesMax);
  }
  if (!IsUtf8(text)) return InvalidArgument("the text is not UTF-8");
  yaml_parser_t parser;
  if (yaml_parser_initialize(&parser) == 0) return ResourceExhausted("there is no memory");
  const absl::Cleanup deleted = [&] { yaml_parser_delete(&parser); };
  yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(text.data()),
                               text.size());
  try {
    return Documents(parser);
  } catch (const absl::Status& stopped) {
    return stopped;
  }
}

absl::StatusOr<Json> YamlToJson(std::string_view text) {
  TAHOMA_ASSIGN_OR_RETURN(std::vector<Json> documents, YamlDocuments(text));
  if (documents.size() > 1) {
    return InvalidArgument("one document is expected, not {}", documents.size());
  }
  return documents.empty() ? Json(nullptr) : std::move(documents.front());
}

}  // namespace tahoma::kube
