// Label and field selectors: as text on the command line or in a query, and labels as they stand in
// objects.
//
//   const LabelSelector selector = *LabelSelector::Parse("app=train,tier in (a,b),!old");
//   selector.Matches([&](std::string_view key) { return Find(labels, key); });
//   LabelSelector of_object;
//   of_object.Require("tier", "In", {"a", "b"});   // from matchExpressions
//   auto fields = ParseFieldSelector("metadata.name=a,status.phase!=Failed");
//   for (const FieldTerm& term : *fields) …
//
// Semantics and messages are those of apimachinery pkg/labels and pkg/fields: `!=` and `notin`
// also match objects without the key.
//
// Thread safety: values; matching is const.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tahoma::kube {

// Returns the value of a label, or nullopt when the object does not have it.
using LabelLookup = std::function<std::optional<std::string_view>(std::string_view key)>;

class LabelSelector {
 public:
  static constexpr std::size_t kBytesMax = 16 << 10;

  // Matches everything.
  LabelSelector() = default;

  // Parses a selector. kInvalidArgument with Kubernetes' message.
  static absl::StatusOr<LabelSelector> Parse(std::string_view text);

  // Narrows it by one of an object's matchExpressions: "In", "NotIn", "Exists" or "DoesNotExist".
  // kInvalidArgument when Kubernetes refuses the requirement; the selector is as before then.
  absl::Status Require(std::string_view key, std::string_view op, std::vector<std::string> values);

  bool Matches(const LabelLookup& labels) const;
  bool empty() const { return terms_.empty(); }

  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;

 private:
  friend class LabelParser;
  enum class Operator : std::uint8_t { kIn, kNotIn, kExists, kNotExists, kGreater, kLess };
  struct Term {
    std::string key;
    Operator op;
    std::vector<std::string> values;  // sorted
    std::int64_t number;              // kGreater, kLess

    friend bool operator==(const Term&, const Term&) = default;
  };

  std::vector<Term> terms_;  // all must hold
};

struct FieldTerm {
  std::string field;  // "metadata.name"
  std::string value;
  bool equal = true;  // false: !=

  friend bool operator==(const FieldTerm&, const FieldTerm&) = default;
};

// Parses "a=b,c!=d"; "\\", "\," and "\=" stand for themselves in values. The caller checks which
// fields exist. kInvalidArgument with Kubernetes' message.
absl::StatusOr<std::vector<FieldTerm>> ParseFieldSelector(std::string_view text);

}  // namespace tahoma::kube
