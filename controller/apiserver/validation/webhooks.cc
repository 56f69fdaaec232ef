// Configurations of admission webhooks, with the texts of Kubernetes'
// pkg/apis/admissionregistration/validation and of k8s.io/apiserver pkg/util/webhook.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "controller/apiserver/validation/parts.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/cel/named_expression.h"
#include "lib/kube/object.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr std::size_t kConditionsMax = 64;
constexpr std::string_view kUrlForm = "; desired format: https://host[/path]";

bool HasWildcard(const Json& list) {
  return std::any_of(list.begin(), list.end(), [](const Json& one) { return one == "*"; });
}

// Checks a list that must not be empty, and in which "*" stands alone. `others` is "API groups".
void CheckList(const Json& list, const std::string& path, std::string_view others, Causes& causes) {
  if (list.empty()) causes.push_back(Required(path));
  if (list.size() > 1 && HasWildcard(list)) {
    causes.push_back(
        Invalid(path, list, fmt::format("if '*' is present, must not specify other {}", others)));
  }
}

void CheckOperations(const Json& operations, const std::string& path, Causes& causes) {
  CheckList(operations, path, "operations", causes);
  const std::vector<std::string> known = {"*", "CONNECT", "CREATE", "DELETE", "UPDATE"};
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (std::find(known.begin(), known.end(), operations[i]) != known.end()) continue;
    causes.push_back(NotSupported(fmt::format("{}[{}]", path, i), operations[i], known));
  }
}

// Checks "pods", "pods/status", "*/scale", "pods/*", "*" and "*/*".
void CheckResources(const Json& resources, const std::string& path, Causes& causes) {
  if (resources.empty()) causes.push_back(Required(path));
  std::set<std::string> all_of;  // x of x/*
  std::set<std::string> of_all;  // x of */x
  bool has_plain = false;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    const auto text = resources[i].get<std::string>();
    if (text.empty()) causes.push_back(Required(at));
    const std::size_t slash = text.find('/');
    has_plain |= slash == std::string::npos && text != "*" && !text.empty();
    if (slash == std::string::npos) continue;
    const std::string resource = text.substr(0, slash);
    const std::string sub = text.substr(slash + 1);
    if (all_of.contains(resource)) {
      causes.push_back(Invalid(
          at, text, fmt::format("if '{}/*' is present, must not specify {}", resource, text)));
    }
    if (of_all.contains(sub)) {
      causes.push_back(
          Invalid(at, text, fmt::format("if '*/{}' is present, must not specify {}", sub, text)));
    }
    if (sub == "*") all_of.insert(resource);
    if (resource == "*") of_all.insert(sub);
  }
  if (resources.size() > 1 &&
      std::find(resources.begin(), resources.end(), "*/*") != resources.end()) {
    causes.push_back(
        Invalid(path, resources, "if '*/*' is present, must not specify other resources"));
  }
  if (has_plain && HasWildcard(resources)) {
    causes.push_back(Invalid(path, resources,
                             "if '*' is present, must not specify other resources without "
                             "subresources"));
  }
}

void CheckRule(const Json& rule, const std::string& path, Causes& causes) {
  CheckOperations(ValueAt(rule, {"operations"}), path + ".operations", causes);
  CheckList(ValueAt(rule, {"apiGroups"}), path + ".apiGroups", "API groups", causes);
  const Json& versions = ValueAt(rule, {"apiVersions"});
  CheckList(versions, path + ".apiVersions", "API versions", causes);
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (versions[i] == "") causes.push_back(Required(fmt::format("{}.apiVersions[{}]", path, i)));
  }
  CheckResources(ValueAt(rule, {"resources"}), path + ".resources", causes);
}

void CheckUrl(const std::string& url, const std::string& path, Causes& causes) {
  const std::size_t colon = url.find("://");
  const std::string scheme = colon == std::string::npos ? "" : url.substr(0, colon);
  std::string rest = colon == std::string::npos ? "" : url.substr(colon + 3);
  if (scheme != "https") {
    causes.push_back(
        Invalid(path, scheme, fmt::format("'https' is the only allowed URL scheme{}", kUrlForm)));
  }
  const std::string host = rest.substr(0, rest.find_first_of("/?#"));
  if (host.empty()) {
    causes.push_back(Invalid(path, host, fmt::format("host must be specified{}", kUrlForm)));
  }
  if (const std::size_t at = host.find('@'); at != std::string::npos) {
    causes.push_back(
        Invalid(path, host.substr(0, at), "user information is not permitted in the URL"));
  }
  if (const std::size_t hash = url.find('#'); hash != std::string::npos && hash + 1 < url.size()) {
    causes.push_back(Invalid(path, url.substr(hash + 1), "fragments are not permitted in the URL"));
  }
  const std::string query = url.substr(0, url.find('#'));
  if (const std::size_t mark = query.find('?');
      mark != std::string::npos && mark + 1 < query.size()) {
    causes.push_back(
        Invalid(path, query.substr(mark + 1), "query parameters are not permitted in the URL"));
  }
}

void CheckServicePath(const std::string& text, const std::string& path, Causes& causes) {
  if (text.empty() || text == "/") return;
  if (text == "//") return causes.push_back(Invalid(path, text, "segment[0] may not be empty"));
  if (!text.starts_with('/')) causes.push_back(Invalid(path, text, "must start with a '/'"));
  std::string_view rest = std::string_view(text).substr(1);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  for (std::size_t i = 0;; ++i) {
    const std::string_view step = rest.substr(0, rest.find('/'));
    const std::string why = step.empty() ? "" : CheckDnsSubdomain(step);
    if (step.empty()) {
      causes.push_back(Invalid(path, text, fmt::format("segment[{}] may not be empty", i)));
    } else if (!why.empty()) {
      causes.push_back(Invalid(path, text, fmt::format("segment[{}]: {}", i, why)));
    }
    if (step.size() == rest.size()) return;
    rest.remove_prefix(step.size() + 1);
  }
}

void CheckClient(const Json& client, const std::string& path, Causes& causes) {
  const Json& url = ValueAt(client, {"url"});
  const Json& service = ValueAt(client, {"service"});
  if (url.is_null() == service.is_null()) {
    causes.push_back(Required(path, "exactly one of url or service is required"));
    return;
  }
  if (!url.is_null()) return CheckUrl(url.get<std::string>(), path + ".url", causes);
  constexpr std::int64_t kPortMax = 65535;
  // kube-apiserver names the other field (it takes namespace and name in the wrong order), and
  // clients see its words.
  for (const auto& [field, named] : {std::pair("namespace", "name"), {"name", "namespace"}}) {
    if (TextAt(service, {field}).empty()) {
      causes.push_back(Required(fmt::format("{}.service.{}", path, named)));
    }
  }
  const std::int64_t port = kube::IntAt(service, {"port"});
  if (port < 1 || port > kPortMax) {
    causes.push_back(Invalid(path + ".service.port", port,
                             "port is not valid: must be between 1 and 65535, inclusive"));
  }
  CheckServicePath(TextAt(service, {"path"}), path + ".service.path", causes);
}

void CheckReviewVersions(const Json& versions, const std::string& path, Causes& causes) {
  if (versions.empty()) {
    causes.push_back(Required(path, "must specify one of v1, v1beta1"));
    return;
  }
  std::set<Json> seen;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    if (!seen.insert(versions[i]).second) {
      causes.push_back(Invalid(at, versions[i], "duplicate version"));
      continue;
    }
    const auto text = versions[i].get<std::string>();
    AddInvalid(at, text, kube::WrongDns1035Label(text).value_or(""), causes);
  }
  if (!seen.contains("v1") && !seen.contains("v1beta1")) {
    causes.push_back(Invalid(path, versions, "must include at least one of v1, v1beta1"));
  }
}

void CheckConditions(const Json& conditions, const std::string& path, Causes& causes) {
  if (conditions.size() > kConditionsMax) {
    causes.push_back(TooMany(path, conditions.size(), kConditionsMax));
  }
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    const std::string text = TextAt(conditions[i], {"expression"});
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
      causes.push_back(Required(at + ".expression"));
    } else if (const auto compiled =
                   kube::NamedExpression::Compile(text, {"object", "oldObject", "request"});
               !compiled.ok()) {
      causes.push_back(Invalid(at + ".expression", text,
                               fmt::format("compilation failed: {}", Message(compiled.status()))));
    }
    const std::string name = TextAt(conditions[i], {"name"});
    if (name.empty()) {
      causes.push_back(Required(at + ".name"));
    } else {
      AddInvalid(at + ".name", name, CheckQualifiedName(name), causes);
    }
  }
}

void CheckWebhook(const Json& webhook, const std::string& path, Causes& causes) {
  const std::string name = TextAt(webhook, {"name"});
  if (name.empty()) {
    causes.push_back(Required(path + ".name"));
  } else if (const std::string why = CheckDnsSubdomain(name); !why.empty()) {
    causes.push_back(Invalid(path + ".name", name, why));
  } else if (std::count(name.begin(), name.end(), '.') < 2) {
    causes.push_back(Invalid(path + ".name", name,
                             "should be a domain with at least three segments separated by dots"));
  }
  const Json& rules = ValueAt(webhook, {"rules"});
  for (std::size_t i = 0; i < rules.size(); ++i) {
    CheckRule(rules[i], fmt::format("{}.rules[{}]", path, i), causes);
  }
  if (ValueAt(webhook, {"sideEffects"}).is_null()) {
    causes.push_back(Required(path + ".sideEffects", "must specify one of None, NoneOnDryRun"));
  }
  constexpr std::int64_t kTimeoutMax = 30;
  const std::int64_t timeout = kube::IntAt(webhook, {"timeoutSeconds"});
  if (timeout < 1 || timeout > kTimeoutMax) {
    causes.push_back(Invalid(path + ".timeoutSeconds", timeout,
                             "the timeout value must be between 1 and 30 seconds"));
  }
  for (const char* selector : {"namespaceSelector", "objectSelector"}) {
    CheckLabelSelector(ValueAt(webhook, {selector}), fmt::format("{}.{}", path, selector), causes);
  }
  CheckClient(ValueAt(webhook, {"clientConfig"}), path + ".clientConfig", causes);
  CheckConditions(ValueAt(webhook, {"matchConditions"}), path + ".matchConditions", causes);
  CheckReviewVersions(ValueAt(webhook, {"admissionReviewVersions"}),
                      path + ".admissionReviewVersions", causes);
}

}  // namespace

void CheckWebhooks(const Json& configuration, Causes& causes) {
  const Json& webhooks = ValueAt(configuration, {"webhooks"});
  for (std::size_t i = 0; i < webhooks.size(); ++i) {
    CheckWebhook(webhooks[i], fmt::format("webhooks[{}]", i), causes);
  }
}

}  // namespace tahoma::controller::apiserver
