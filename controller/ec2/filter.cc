#include "controller/ec2/filter.h"

#include <algorithm>

#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

constexpr std::string_view kTagPrefix = "tag:";
constexpr std::string_view kTagKey = "tag-key";

bool IsLegal(std::string_view name, const std::vector<std::string_view>& names, bool with_tags) {
  if (std::ranges::find(names, name) != names.end()) return true;
  if (!with_tags) return false;
  return name == kTagKey || (name.starts_with(kTagPrefix) && name.size() > kTagPrefix.size());
}

}  // namespace

Pattern::Pattern(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '*') {
      // After any characters neither another `*` nor a `?` adds anything.
      while (!steps_.empty() && steps_.back().kind != Kind::kLiteral) steps_.pop_back();
      steps_.push_back({.kind = Kind::kAny});
    } else if (c == '?') {
      if (steps_.empty() || steps_.back().kind != Kind::kAny) {
        steps_.push_back({.kind = Kind::kOneOrNone});
      }
    } else {
      if (c == '\\' && i + 1 < text.size()) ++i;
      steps_.push_back({.kind = Kind::kLiteral, .literal = text[i]});
      ++literals_;
      continue;
    }
    plain_ = false;
  }
}

bool Pattern::Matches(std::string_view text) const {
  if (text.size() < literals_) return false;
  if (plain_) {
    return text.size() == literals_ &&
           std::ranges::equal(text, steps_, {}, {}, [](const Step& step) { return step.literal; });
  }
  // reached[i]: the first i steps match what was read so far. Bytes stand for characters: a `?`
  // of ASCII names needs no more.
  std::vector<char> reached(steps_.size() + 1, 0);
  const auto pass_empty_steps = [&] {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (reached[i] != 0 && steps_[i].kind != Kind::kLiteral) reached[i + 1] = 1;
    }
  };
  reached[0] = 1;
  pass_empty_steps();
  for (const char c : text) {
    for (std::size_t i = steps_.size(); i > 0; --i) {
      const Step& step = steps_[i - 1];
      const bool takes = step.kind != Kind::kLiteral || step.literal == c;
      const bool stays = step.kind == Kind::kAny && reached[i] != 0;
      reached[i] = (reached[i - 1] != 0 && takes) || stays ? 1 : 0;
    }
    reached[0] = 0;
    pass_empty_steps();
  }
  return reached.back() != 0;
}

bool Filter::Matches(const std::vector<std::string>& values_of_object) const {
  return std::ranges::any_of(values, [&](const Pattern& pattern) {
    return std::ranges::any_of(values_of_object,
                               [&](const std::string& value) { return pattern.Matches(value); });
  });
}

std::vector<Filter> ReadFilters(Reader& reader, const std::vector<std::string_view>& names,
                                bool with_tags) {
  const auto read = [&](Reader& item) {
    Filter filter{.name = item.Required("Name"), .values = {}};
    const std::vector<std::string> texts = item.Texts("Value", kFilterValuesMost, true);
    if (!IsLegal(filter.name, names, with_tags)) {
      item.Fail(Refuse(kInvalidParameterValue, "the filter '{}' is not known here; legal are {}{}",
                       filter.name, fmt::join(names, ", "), with_tags ? ", tag:KEY, tag-key" : ""));
    }
    if (texts.empty()) {
      item.Fail(Refuse(kMissingParameter, "the filter '{}' must have {}", filter.name,
                       item.FullName("Value.1")));
    }
    for (const std::string& text : texts) {
      if (text.size() > kFilterValueBytesMost) {
        item.Fail(Refuse(kInvalidParameterValue,
                         "a value of the filter '{}' has {} bytes; at most {} are legal",
                         filter.name, text.size(), kFilterValueBytesMost));
      }
      filter.values.emplace_back(text);
    }
    return filter;
  };
  std::vector<Filter> filters = reader.Items<Filter>("Filter", kFiltersMost, read);
  std::size_t values = 0;
  for (const Filter& filter : filters) values += filter.values.size();
  if (values > kFilterValuesMost) {
    reader.Fail(Refuse(kFilterLimitExceeded, "the filters have {} values; at most {} are legal",
                       values, kFilterValuesMost));
  }
  return filters;
}

std::optional<std::vector<std::string>> TagValues(std::string_view filter_name,
                                                  const std::vector<Tag>& tags) {
  std::vector<std::string> values;
  if (filter_name == kTagKey) {
    for (const Tag& tag : tags) values.push_back(tag.key);
    return values;
  }
  if (!filter_name.starts_with(kTagPrefix)) return std::nullopt;
  for (const Tag& tag : tags) {
    if (tag.key == filter_name.substr(kTagPrefix.size())) values.push_back(tag.value);
  }
  return values;
}

}  // namespace tahoma::controller::ec2
