#include "sim-node/podrunner/environment.h"

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

// "metadata.labels['app']" -> the value of label app, empty when there is none (as a kubelet does).
absl::StatusOr<std::string> Subscript(std::string_view path,
                                      const std::map<std::string, std::string>& values) {
  const std::size_t open = path.find("['");
  if (open == std::string_view::npos || !path.ends_with("']") || path.size() < open + 4) {
    return InvalidArgument("field path {} is not of the form metadata.labels['key']", path);
  }
  const std::string key(path.substr(open + 2, path.size() - open - 4));
  const auto found = values.find(key);
  return found == values.end() ? std::string() : found->second;
}

std::string LinesOf(const std::map<std::string, std::string>& values) {
  std::string lines;
  for (const auto& [key, value] : values) {
    lines += fmt::format("{}{}={}", lines.empty() ? "" : "\n", key, Json(value).dump());
  }
  return lines;
}

// True when the variable has a value; false when an optional source is absent.
absl::StatusOr<bool> KeyValue(const EnvVar& var, const ObjectReader& read, std::string& value) {
  const bool is_map = var.source == EnvVar::Source::kConfigMapKey;
  const auto entries = read(is_map ? KeyedObject::kConfigMap : KeyedObject::kSecret, var.object);
  if (!entries.ok()) {
    if (var.optional && entries.status().code() == absl::StatusCode::kNotFound) return false;
    return entries.status();
  }
  const auto found = entries->find(var.key);
  if (found != entries->end()) {
    value = found->second;
    return true;
  }
  if (var.optional) return false;
  return NotFound("couldn't find key {} in {} {}", var.key, is_map ? "ConfigMap" : "Secret",
                  var.object);
}

absl::Status AddVariable(const PodSpec& pod, const EnvVar& var,
                         const PodMachine::Addresses& addresses, const ObjectReader& read,
                         Environment& environment) {
  std::string value;
  switch (var.source) {
    case EnvVar::Source::kValue:
      value = Expand(var.value, environment);
      break;
    case EnvVar::Source::kField: {
      TAHOMA_ASSIGN_OR_RETURN(value, FieldText(pod, addresses, var.value));
      break;
    }
    case EnvVar::Source::kConfigMapKey:
    case EnvVar::Source::kSecretKey: {
      TAHOMA_ASSIGN_OR_RETURN(const bool present, KeyValue(var, read, value));
      if (!present) return absl::OkStatus();
      break;
    }
    case EnvVar::Source::kUnsupported:
      return InvalidArgument("valueFrom.{} is not supported for local processes", var.value);
  }
  environment[var.name] = std::move(value);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> FieldText(const PodSpec& pod, const PodMachine::Addresses& addresses,
                                      const std::string& path) {
  const std::map<std::string_view, std::string_view> fields = {
      {"metadata.name", pod.name},
      {"metadata.namespace", pod.name_space},
      {"metadata.uid", pod.uid},
      {"spec.nodeName", pod.node_name},
      {"spec.serviceAccountName", pod.service_account},
      {"status.hostIP", addresses.host_ip},
      {"status.hostIPs", addresses.host_ip},
      {"status.podIP", addresses.pod_ip},
      {"status.podIPs", addresses.pod_ip},
  };
  const auto found = fields.find(path);
  if (found != fields.end()) return std::string(found->second);
  if (path == "metadata.labels") return LinesOf(pod.labels);
  if (path == "metadata.annotations") return LinesOf(pod.annotations);
  if (path.starts_with("metadata.labels[")) return Subscript(path, pod.labels);
  if (path.starts_with("metadata.annotations[")) return Subscript(path, pod.annotations);
  return InvalidArgument("field path {} is not known", path);
}

std::string Expand(std::string_view text, const Environment& environment) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    if (text[i + 1] == '$') {
      out += '$';
      ++i;
      continue;
    }
    const std::size_t close = text[i + 1] == '(' ? text.find(')', i) : std::string_view::npos;
    if (close == std::string_view::npos) {
      out += '$';
      continue;
    }
    const auto found = environment.find(std::string(text.substr(i + 2, close - i - 2)));
    out += found != environment.end() ? std::string_view(found->second)
                                      : text.substr(i, close - i + 1);
    i = close;
  }
  return out;
}

std::vector<std::string> ExpandAll(const std::vector<std::string>& texts,
                                   const Environment& environment) {
  std::vector<std::string> expanded;
  expanded.reserve(texts.size());
  for (const std::string& text : texts) expanded.push_back(Expand(text, environment));
  return expanded;
}

absl::StatusOr<Environment> BuildEnvironment(const PodSpec& pod, const ContainerSpec& container,
                                             const PodMachine::Addresses& addresses,
                                             const ObjectReader& read) {
  Environment environment;
  for (const EnvFrom& from : container.env_from) {
    const bool is_map = from.source == EnvFrom::Source::kConfigMap;
    const auto entries = read(is_map ? KeyedObject::kConfigMap : KeyedObject::kSecret, from.object);
    if (!entries.ok()) {
      if (from.optional && entries.status().code() == absl::StatusCode::kNotFound) continue;
      return Annotate(entries.status(), "envFrom");
    }
    for (const auto& [key, value] : *entries) environment[from.prefix + key] = value;
  }
  for (const EnvVar& var : container.env) {
    const absl::Status added = AddVariable(pod, var, addresses, read, environment);
    if (!added.ok()) return Annotate(added, "env " + var.name);
  }
  return environment;
}

}  // namespace tahoma::sim
