// Filters of EC2's Describe actions: a name, and values of which one must match.
//
// An object passes when every filter has a value that matches one of the object's. In a value `*`
// stands for any characters, `?` for one or none, and `\` takes the next character as it is. Types
// with tags have also `tag:KEY` (the values of that tag) and `tag-key`.
//
// Scope: deciding on one object; controller/ec2/page.h lists many.
//
// Thread safety: pure functions and values.

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/ec2/parameters.h"
#include "controller/ec2/values.h"

namespace tahoma::controller::ec2 {

// A filter's value.
class Pattern {
 public:
  explicit Pattern(std::string_view text);
  bool Matches(std::string_view text) const;

 private:
  enum class Kind : char { kLiteral, kOneOrNone, kAny };
  struct Step {
    Kind kind = Kind::kLiteral;
    char literal = '\0';
  };
  std::vector<Step> steps_;
  std::size_t literals_ = 0;  // a text with fewer characters cannot match
  bool plain_ = true;         // literals only
};

struct Filter {
  std::string name;
  std::vector<Pattern> values;

  bool Matches(const std::vector<std::string>& values_of_object) const;
};

inline constexpr std::size_t kFiltersMost = 50;
inline constexpr std::size_t kFilterValuesMost = 200;  // of all filters together, as EC2 has it
inline constexpr std::size_t kFilterValueBytesMost = 255;

// Reads Filter.N.Name and Filter.N.Value.N. A name that is not among `names` is a mistake of the
// reader.
std::vector<Filter> ReadFilters(Reader& reader, const std::vector<std::string_view>& names,
                                bool with_tags);

template <typename T>
struct FilterField {
  std::string_view name;
  std::vector<std::string> (*values)(const T& object);
};

template <typename T>
std::vector<std::string_view> NamesOf(const std::vector<FilterField<T>>& fields) {
  std::vector<std::string_view> names;
  for (const FilterField<T>& field : fields) names.push_back(field.name);
  return names;
}

// The values that `tag:KEY` and `tag-key` compare; nothing when the name is none of them.
std::optional<std::vector<std::string>> TagValues(std::string_view filter_name,
                                                  const std::vector<Tag>& tags);

template <typename T>
std::vector<std::string> ValuesOf(std::string_view name, const T& object,
                                  const std::vector<FilterField<T>>& fields) {
  if constexpr (requires { object.tags; }) {
    if (auto values = TagValues(name, object.tags)) return *std::move(values);
  }
  for (const FilterField<T>& field : fields) {
    if (field.name == name) return field.values(object);
  }
  return {};
}

template <typename T>
bool MatchesAll(const std::vector<Filter>& filters, const T& object,
                const std::vector<FilterField<T>>& fields) {
  for (const Filter& filter : filters) {
    if (!filter.Matches(ValuesOf(filter.name, object, fields))) return false;
  }
  return true;
}

}  // namespace tahoma::controller::ec2
