// Affinity of pods and how pods are spread, with the texts of Kubernetes' pkg/apis/core/validation
// and of apimachinery's pkg/apis/meta/v1/validation.

#include <fmt/format.h>

#include <set>

#include "controller/apiserver/validation/parts.h"
#include "controller/apiserver/validation/workloads.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

// Null stands for the empty text, in lists and maps, too.
std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool IsSet(std::string_view op) { return op == "In" || op == "NotIn"; }
bool IsPresence(std::string_view op) { return op == "Exists" || op == "DoesNotExist"; }

void CheckKeyAndValues(const Json& requirement, const std::string& path, Causes& causes) {
  const std::string key = TextAt(requirement, {"key"});
  AddInvalid(path + ".key", key, CheckQualifiedName(key), causes);
  const Json& values = ValueAt(requirement, {"values"});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string value = TextOf(values[i]);
    AddInvalid(fmt::format("{}.values[{}]", path, i), value, CheckLabelValue(value), causes);
  }
}

// A requirement on labels, of pods or of nodes; only nodes' are compared as numbers.
void CheckRequirement(const Json& requirement, const std::string& path, bool numbers,
                      Causes& causes) {
  const std::string op = TextAt(requirement, {"operator"});
  const std::size_t values = SizeAt(requirement, {"values"});
  if (IsSet(op)) {
    if (values == 0) {
      causes.push_back(
          Required(path + ".values", "must be specified when `operator` is 'In' or 'NotIn'"));
    }
  } else if (IsPresence(op)) {
    if (values > 0) {
      causes.push_back(Forbidden(
          path + ".values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    }
  } else if (numbers && (op == "Gt" || op == "Lt")) {
    if (values != 1) {
      causes.push_back(Required(path + ".values",
                                "must be specified single value when `operator` is 'Lt' or 'Gt'"));
    }
  } else {
    causes.push_back(Invalid(path + ".operator", op, "not a valid selector operator"));
  }
  CheckKeyAndValues(requirement, path, causes);
}

void CheckNodeField(const Json& requirement, const std::string& path, Causes& causes) {
  const std::string op = TextAt(requirement, {"operator"});
  const Json& values = ValueAt(requirement, {"values"});
  if (!IsSet(op)) {
    causes.push_back(Invalid(path + ".operator", op, "not a valid selector operator"));
  } else if (values.size() != 1) {
    causes.push_back(
        Required(path + ".values",
                 "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                 "selector"));
  }
  const std::string key = TextAt(requirement, {"key"});
  if (key != "metadata.name") {
    causes.push_back(Invalid(path + ".key", key, "not a valid field selector key"));
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string name = TextOf(values[i]);
    AddInvalid(fmt::format("{}.values[{}]", path, i), name, CheckDnsSubdomain(name), causes);
  }
}

void CheckNodeTerm(const Json& term, const std::string& path, Causes& causes) {
  const Json& labels = ValueAt(term, {"matchExpressions"});
  for (std::size_t i = 0; i < labels.size(); ++i) {
    CheckRequirement(labels[i], fmt::format("{}.matchExpressions[{}]", path, i), true, causes);
  }
  const Json& fields = ValueAt(term, {"matchFields"});
  for (std::size_t i = 0; i < fields.size(); ++i) {
    CheckNodeField(fields[i], fmt::format("{}.matchFields[{}]", path, i), causes);
  }
}

void CheckWeight(const Json& weighted, const std::string& path, Causes& causes) {
  const Json& weight = ValueAt(weighted, {"weight"});
  const auto value = weight.is_number_integer() ? weight.get<std::int64_t>() : 0;
  if (value >= 1 && value <= 100) return;
  causes.push_back(Invalid(path + ".weight", value, "must be in the range 1-100"));
}

void CheckNodeAffinity(const Json& affinity, const std::string& path, Causes& causes) {
  if (const Json& required = ValueAt(affinity, {kRequired}); !required.is_null()) {
    CheckNodeSelector(required, fmt::format("{}.{}", path, kRequired), causes);
  }
  const Json& preferred = ValueAt(affinity, {kPreferred});
  for (std::size_t i = 0; i < preferred.size(); ++i) {
    const std::string at = fmt::format("{}.{}[{}]", path, kPreferred, i);
    CheckWeight(preferred[i], at, causes);
    CheckNodeTerm(ValueAt(preferred[i], {"preference"}), at + ".preference", causes);
  }
}

void CheckLabelKeys(const Json& term, const std::string& path, Causes& causes) {
  for (const char* name : {"matchLabelKeys", "mismatchLabelKeys"}) {
    const Json& keys = ValueAt(term, {name});
    const std::string at = fmt::format("{}.{}", path, name);
    if (!keys.empty() && ValueAt(term, {"labelSelector"}).is_null()) {
      causes.push_back(Forbidden(at, "must not be specified when labelSelector is not set"));
      continue;
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::string key = TextOf(keys[i]);
      AddInvalid(fmt::format("{}[{}]", at, i), key, CheckQualifiedName(key), causes);
    }
  }
}

// The keys' requirements stand in matchExpressions already (AddLabelKeys): one more of the same key
// before it was the client's own.
void CheckLabelKeysOnce(const Json& term, const std::string& path, Causes& causes) {
  const Json& match = ValueAt(term, {"matchLabelKeys"});
  std::set<std::string> seen;
  for (const auto& [key, value] : ValueAt(term, {"labelSelector", "matchLabels"}).items()) {
    seen.insert(key);
  }
  for (const Json& one : ValueAt(term, {"labelSelector", "matchExpressions"})) {
    const std::string key = TextAt(one, {"key"});
    const bool before = !seen.insert(key).second;
    for (std::size_t i = 0; before && i < match.size(); ++i) {
      if (match[i] != key) continue;
      causes.push_back(Invalid(fmt::format("{}[{}]", path, i), key,
                               "exists in both matchLabelKeys and labelSelector"));
    }
  }
}

void CheckLabelKeysDiffer(const Json& term, const std::string& path, Causes& causes) {
  const Json& match = ValueAt(term, {"matchLabelKeys"});
  const Json& mismatch = ValueAt(term, {"mismatchLabelKeys"});
  const std::set<Json> differ(mismatch.begin(), mismatch.end());
  for (std::size_t i = 0; i < match.size(); ++i) {
    if (!differ.contains(match[i])) continue;
    causes.push_back(Invalid(fmt::format("{}.matchLabelKeys[{}]", path, i), match[i],
                             "exists in both matchLabelKeys and mismatchLabelKeys"));
  }
}

void CheckPodTerm(const Json& term, const std::string& path, Causes& causes) {
  CheckLabelSelector(ValueAt(term, {"labelSelector"}), path + ".labelSelector", causes);
  CheckLabelSelector(ValueAt(term, {"namespaceSelector"}), path + ".namespaceSelector", causes);
  for (const Json& name : ValueAt(term, {"namespaces"})) {
    const std::string text = TextOf(name);
    AddInvalid(path + ".namespace", text, CheckDnsLabel(text), causes);
  }
  CheckLabelKeys(term, path, causes);
  CheckLabelKeysOnce(term, path, causes);
  CheckLabelKeysDiffer(term, path, causes);
  const std::string key = TextAt(term, {"topologyKey"});
  if (key.empty()) causes.push_back(Required(path + ".topologyKey", "can not be empty"));
  AddInvalid(path + ".topologyKey", key, CheckQualifiedName(key), causes);
}

void CheckPositive(const Json& object, const char* field, const std::string& path, Causes& causes) {
  const Json& value = ValueAt(object, {field});
  if (!value.is_number_integer() || value.get<std::int64_t>() > 0) return;
  causes.push_back(Invalid(fmt::format("{}.{}", path, field), value, "must be greater than zero"));
}

void CheckSpread(const Json& constraint, const std::string& path, Causes& causes) {
  CheckPositive(constraint, "maxSkew", path, causes);
  if (TextAt(constraint, {"topologyKey"}).empty()) {
    causes.push_back(Required(path + ".topologyKey", "can not be empty"));
  }
  CheckPositive(constraint, "minDomains", path, causes);
  const Json& domains = ValueAt(constraint, {"minDomains"});
  const std::string action = TextAt(constraint, {"whenUnsatisfiable"});
  if (!domains.is_null() && action != "DoNotSchedule") {
    causes.push_back(Invalid(
        path + ".minDomains", domains,
        fmt::format("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", action)));
  }
  CheckLabelKeys(constraint, path, causes);
  CheckLabelKeysOnce(constraint, path, causes);
  CheckLabelSelector(ValueAt(constraint, {"labelSelector"}), path + ".labelSelector", causes);
}

void AddLabelKeysTo(Json& term, const char* list, const char* op, const Json& labels) {
  if (!ValueAt(term, {"labelSelector"}).is_object()) return;  // it selects nothing
  const Json keys = ValueAt(term, {list});
  for (const Json& key : keys) {
    const auto label = labels.find(TextOf(key));
    if (label == labels.end()) continue;
    term["labelSelector"]["matchExpressions"].push_back(
        {{"key", key}, {"operator", op}, {"values", Json::array({*label})}});
  }
}

void AddLabelKeysTo(Json& term, const Json& labels) {
  AddLabelKeysTo(term, "matchLabelKeys", "In", labels);
  AddLabelKeysTo(term, "mismatchLabelKeys", "NotIn", labels);
}

}  // namespace

void CheckLabelSelector(const Json& selector, const std::string& path, Causes& causes) {
  for (const auto& [key, value] : ValueAt(selector, {"matchLabels"}).items()) {
    AddInvalid(path + ".matchLabels", key, CheckQualifiedName(key), causes);
    const std::string text = TextOf(value);
    AddInvalid(path + ".matchLabels", text, CheckLabelValue(text), causes);
  }
  const Json& expressions = ValueAt(selector, {"matchExpressions"});
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    CheckRequirement(expressions[i], fmt::format("{}.matchExpressions[{}]", path, i), false,
                     causes);
  }
}

void CheckNodeSelector(const Json& selector, const std::string& path, Causes& causes) {
  const std::string terms_path = path + ".nodeSelectorTerms";
  const Json& terms = ValueAt(selector, {"nodeSelectorTerms"});
  if (terms.empty()) {
    causes.push_back(Required(terms_path, "must have at least one node selector term"));
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    CheckNodeTerm(terms[i], fmt::format("{}[{}]", terms_path, i), causes);
  }
}

void CheckAffinity(const Json& affinity, const std::string& path, Causes& causes) {
  CheckNodeAffinity(ValueAt(affinity, {"nodeAffinity"}), path + ".nodeAffinity", causes);
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    const Json& required = ValueAt(affinity, {kind, kRequired});
    for (std::size_t i = 0; i < required.size(); ++i) {
      CheckPodTerm(required[i], fmt::format("{}.{}.{}[{}]", path, kind, kRequired, i), causes);
    }
    const Json& preferred = ValueAt(affinity, {kind, kPreferred});
    for (std::size_t i = 0; i < preferred.size(); ++i) {
      const std::string at = fmt::format("{}.{}.{}[{}]", path, kind, kPreferred, i);
      CheckWeight(preferred[i], at, causes);
      CheckPodTerm(ValueAt(preferred[i], {"podAffinityTerm"}), at + ".podAffinityTerm", causes);
    }
  }
}

void CheckSpreadConstraints(const Json& constraints, const std::string& path, Causes& causes) {
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    CheckSpread(constraints[i], fmt::format("{}[{}]", path, i), causes);
  }
}

void AddLabelKeys(Json& pod) {
  const Json labels = ValueAt(pod, {"metadata", "labels"});
  if (!labels.is_object()) return;
  if (ValueAt(pod, {"spec", "topologySpreadConstraints"}).is_array()) {
    for (Json& one : pod["spec"]["topologySpreadConstraints"]) AddLabelKeysTo(one, labels);
  }
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    if (!ValueAt(pod, {"spec", "affinity", kind}).is_object()) continue;
    Json& affinity = pod["spec"]["affinity"][kind];
    if (ValueAt(affinity, {kPreferred}).is_array()) {
      for (Json& one : affinity[std::string(kPreferred)]) {
        if (ValueAt(one, {"podAffinityTerm"}).is_object()) {
          AddLabelKeysTo(one["podAffinityTerm"], labels);
        }
      }
    }
    if (ValueAt(affinity, {kRequired}).is_array()) {
      for (Json& one : affinity[std::string(kRequired)]) AddLabelKeysTo(one, labels);
    }
  }
}

}  // namespace tahoma::controller::apiserver
