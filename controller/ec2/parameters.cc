#include "controller/ec2/parameters.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "lib/base/ascii.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/rest/message.h"

namespace tahoma::controller::ec2 {
namespace {

// Lists have at most some hundred items; a number far above is a mistake, or an attack on loops.
constexpr int kIndexMost = 9999;

absl::Status Malformed(const std::string& message) {
  return RefuseWith(kMalformedQueryString, message);
}

bool IsNameCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '_' || c == '-';
}

bool IsControl(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') ||
         c == '\x7f';
}

// A text as messages quote it.
std::string Quoted(std::string_view text) {
  constexpr std::size_t kQuotedMost = 64;
  const std::string_view cut = CutUtf8(text, kQuotedMost);
  return fmt::format("'{}{}'", cut, cut.size() < text.size() ? "…" : "");
}

absl::Status CheckName(std::string_view name) {
  if (name.empty()) return Malformed("a parameter has no name; NAME=VALUE is legal");
  if (name.size() > Parameters::kNameBytesMost || !std::ranges::all_of(name, IsNameCharacter)) {
    return Refuse(kUnknownParameter,
                  "a parameter's name has at most {} letters, digits, '.', '-' and '_'",
                  Parameters::kNameBytesMost);
  }
  return absl::OkStatus();
}

absl::Status CheckValue(std::string_view name, std::string_view value) {
  if (value.size() > Parameters::kValueBytesMost) {
    return Refuse(kInvalidParameterValue, "{} has {} bytes; at most {} are legal", name,
                  value.size(), Parameters::kValueBytesMost);
  }
  if (!IsUtf8(value) || std::ranges::any_of(value, IsControl)) {
    return Refuse(kInvalidParameterValue, "{} must be UTF-8 text without control characters", name);
  }
  return absl::OkStatus();
}

// The number of an item, "2" of "2.Name"; nothing when the text does not begin with one.
std::optional<int> IndexOf(std::string_view text) {
  int index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || text.front() == '0' || index < 1 || index > kIndexMost) {
    return std::nullopt;
  }
  if (digits < text.size() && text[digits] != '.') return std::nullopt;
  return index;
}

}  // namespace

absl::StatusOr<Parameters> Parameters::Parse(std::string_view form) {
  if (form.size() > kFormBytesMost) {
    return Malformed(fmt::format("the parameters have {} bytes; at most {} are legal", form.size(),
                                 kFormBytesMost));
  }
  Parameters parameters;
  while (!form.empty()) {
    const std::string_view pair = form.substr(0, form.find('&'));
    form.remove_prefix(std::min(form.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const auto name = rest::PercentDecode(pair.substr(0, equals), true);
    const auto value = rest::PercentDecode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) {
      return Malformed(
          "a '%' is not followed by two hexadecimal digits, or stands for a zero byte");
    }
    TAHOMA_RETURN_IF_ERROR(CheckName(*name));
    TAHOMA_RETURN_IF_ERROR(CheckValue(*name, *value));
    if (!parameters.values_.emplace(*name, *value).second) {
      return Malformed(fmt::format("{} is given twice; once is legal", *name));
    }
    if (parameters.values_.size() > kParametersMost) {
      return Malformed(fmt::format("there are more than {} parameters", kParametersMost));
    }
  }
  return parameters;
}

Sha256Digest Parameters::DigestWithout(std::initializer_list<std::string_view> names) const {
  std::string text;
  for (const auto& [name, value] : values_) {
    if (std::ranges::find(names, name) != names.end()) continue;
    text += fmt::format("{}:{}={}:{}\n", name.size(), name, value.size(), value);
  }
  return Sha256(text);
}

struct Reader::State {
  const Parameters::Map& values;
  std::set<std::string, std::less<>> taken = {};
  std::set<std::string, std::less<>> legal = {};  // "Filter.N.Name"
  absl::Status mistake = {};
};

Reader::Reader(const Parameters& parameters)
    : state_(std::make_shared<State>(State{.values = parameters.values()})) {}

void Reader::Fail(absl::Status mistake) {
  if (!probing_ && state_->mistake.ok()) state_->mistake = std::move(mistake);
}

bool Reader::ok() const { return state_->mistake.ok(); }

void Reader::Wrong(std::string_view name, std::string_view value, const std::string& legal) {
  Fail(Refuse(kInvalidParameterValue, "{} is {}; {}", FullName(name), Quoted(value), legal));
}

bool Reader::Has(std::string_view name) const {
  if (probing_) return false;
  const std::string full = FullName(name);
  const auto at = state_->values.lower_bound(full);
  // "Tag" is there also when "Tag.1" is; what sorts between them ("Tag-x") has no such name.
  if (at != state_->values.end() && at->first == full) return true;
  const auto item = state_->values.lower_bound(full + ".");
  return item != state_->values.end() && item->first.starts_with(full + ".");
}

std::optional<std::string> Reader::AnyText(std::string_view name) {
  state_->legal.insert(pattern_ + std::string(name));
  if (probing_) return std::nullopt;
  const auto found = state_->values.find(FullName(name));
  if (found == state_->values.end()) return std::nullopt;
  state_->taken.insert(found->first);
  return found->second;
}

std::optional<std::string> Reader::Text(std::string_view name) {
  std::optional<std::string> text = AnyText(name);
  if (!text || !text->empty()) return text;
  Fail(
      Refuse(kInvalidParameterValue, "{} is empty; leave it out, or give a value", FullName(name)));
  return std::nullopt;
}

std::string Reader::Required(std::string_view name) {
  std::optional<std::string> text = Text(name);
  if (!text) {
    Fail(Refuse(kMissingParameter, "the request must have the parameter {}", FullName(name)));
  }
  return std::move(text).value_or("");
}

std::optional<std::int64_t> Reader::Number(std::string_view name, std::int64_t least,
                                           std::int64_t most) {
  const std::optional<std::string> text = Text(name);
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error == std::errc() && stop == end && least <= number && number <= most) return number;
  Wrong(name, *text, fmt::format("a whole number from {} to {} is legal", least, most));
  return std::nullopt;
}

std::int64_t Reader::RequiredNumber(std::string_view name, std::int64_t least, std::int64_t most) {
  if (!Has(name)) Required(name);
  return Number(name, least, most).value_or(least);
}

std::optional<bool> Reader::Flag(std::string_view name) {
  const std::optional<std::string> text = Text(name);
  if (!text) return std::nullopt;
  if (EqualsIgnoringCase(*text, "true")) return true;
  if (EqualsIgnoringCase(*text, "false")) return false;
  Wrong(name, *text, "true and false are legal");
  return std::nullopt;
}

std::optional<WallTime> Reader::Time(std::string_view name) {
  const std::optional<std::string> text = Text(name);
  if (!text) return std::nullopt;
  const absl::StatusOr<WallTime> time = ParseTime(*text);
  if (time.ok()) return *time;
  Wrong(name, *text, "a time in UTC such as 2026-11-21T11:30:00Z is legal");
  return std::nullopt;
}

std::vector<int> Reader::IndexesOf(std::string_view name, std::size_t most) {
  std::set<int> indexes;
  const std::string start = FullName(name) + ".";
  for (auto at = state_->values.lower_bound(start);
       at != state_->values.end() && at->first.starts_with(start); ++at) {
    const std::string_view rest = std::string_view(at->first).substr(start.size());
    // A name without a number is nobody's, and Finish tells so.
    if (const std::optional<int> index = rest.empty() ? std::nullopt : IndexOf(rest)) {
      indexes.insert(*index);
    }
  }
  if (indexes.size() <= most) return {indexes.begin(), indexes.end()};
  Fail(Refuse(kInvalidParameterValue, "there are {} of {}N; at most {} are legal", indexes.size(),
              start, most));
  // They are too many, not unknown.
  for (auto at = state_->values.lower_bound(start);
       at != state_->values.end() && at->first.starts_with(start); ++at) {
    state_->taken.insert(at->first);
  }
  return {};
}

std::vector<std::string> Reader::Texts(std::string_view name, std::size_t most, bool may_be_empty) {
  state_->legal.insert(fmt::format("{}{}.N", pattern_, name));
  std::vector<std::string> texts;
  if (probing_) return texts;
  for (const int index : IndexesOf(name, most)) {
    const auto found = state_->values.find(fmt::format("{}{}.{}", prefix_, name, index));
    if (found == state_->values.end()) continue;  // "Name.1.Other": nobody's
    state_->taken.insert(found->first);
    if (found->second.empty() && !may_be_empty) {
      Fail(Refuse(kInvalidParameterValue, "{} is empty; leave it out, or give a value",
                  found->first));
    }
    texts.push_back(found->second);
  }
  return texts;
}

std::vector<Reader> Reader::ReadersOf(std::string_view name, std::size_t most) {
  const std::string pattern = fmt::format("{}{}.N.", pattern_, name);
  std::vector<Reader> readers;
  if (!probing_) {
    for (const int index : IndexesOf(name, most)) {
      readers.push_back(
          Reader(state_, fmt::format("{}{}.{}.", prefix_, name, index), pattern, false));
    }
  }
  if (readers.empty()) readers.push_back(Reader(state_, pattern, pattern, true));
  return readers;
}

absl::Status Reader::Finish() const {
  for (const auto& [name, value] : state_->values) {
    if (state_->taken.contains(name)) continue;
    return Refuse(kUnknownParameter, "{} is not known here; legal are {}", name,
                  fmt::join(state_->legal, ", "));
  }
  return state_->mistake;
}

}  // namespace tahoma::controller::ec2
