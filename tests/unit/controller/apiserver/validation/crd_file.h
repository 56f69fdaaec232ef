// The kinds of the chart's CustomResourceDefinitions, and their rules alone.
//
//   const Kind& gangs = KindOfCrdFile("gangs");    // of charts/tahoma/crds/tahoma.dev_gangs.yaml
//   BrokenRules(gangs, gang);                      // "must divide spec.members", …
//
// Thread safety: any thread.

#pragma once

#include <map>
#include <memory>
#include <string>

#include "controller/apiserver/schema/crd.h"
#include "controller/apiserver/schema/rules.h"
#include "lib/base/check.h"
#include "lib/base/files.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/yaml.h"

namespace tahoma::controller::apiserver {

inline std::shared_ptr<const Kind> KindOfCrdFile(const std::string& plural) {
  const auto text = ReadFile("charts/tahoma/crds/tahoma.dev_" + plural + ".yaml");
  TAHOMA_CHECK_OK(text.status());
  const auto crd = kube::YamlToJson(*text);
  TAHOMA_CHECK_OK(crd.status());
  const auto kinds = KindsOfCrd(*crd);
  TAHOMA_CHECK_OK(kinds.status());
  TAHOMA_CHECK(kinds->front()->rule_faults.empty());
  return kinds->front();
}

// Returns the messages of the rules that a new object breaks, without "Invalid value: ", by field.
inline std::multimap<std::string, std::string> BrokenRules(const Kind& kind, const Json& object) {
  Causes causes;
  CheckRules(*kind.schema, nullptr, object, causes);
  std::multimap<std::string, std::string> broken;
  for (const Cause& cause : causes) {
    broken.emplace(cause.field, cause.message.substr(cause.message.find(": ") + 2));
  }
  return broken;
}

}  // namespace tahoma::controller::apiserver
