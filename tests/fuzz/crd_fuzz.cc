// CustomResourceDefinitions and objects of their kinds, through the whole API server: a definition
// is refused or served, and then objects of any form are created, defaulted, checked, shown as
// tables and described by discovery and OpenAPI.
//
// The input is the definition and then objects, with "%%" alone on a line between them.

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/url.h"
#include "tests/fuzz/api_under_test.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using tahoma::Json;
using tahoma::fuzz::Answered;
using tahoma::fuzz::ApiUnderTest;

constexpr const char* kCrds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

std::vector<std::string> Parts(std::string_view input) {
  constexpr std::string_view kBetween = "\n%%\n";
  constexpr std::size_t kPartsMax = 6;
  std::vector<std::string> parts;
  while (!input.empty() && parts.size() < kPartsMax) {
    const std::size_t end = input.find(kBetween);
    parts.emplace_back(input.substr(0, end));
    input.remove_prefix(end == std::string_view::npos ? input.size() : end + kBetween.size());
  }
  return parts;
}

void MustServe(const tahoma::rest::Request& request, const Answered& answered) {
  if (answered.status == 200) return;
  std::fprintf(stderr, "%s -> %s\n", request.target.c_str(), answered.text.c_str());
  TAHOMA_CHECK(answered.status == 200);
}

// Makes the requests that are possible for objects of one version.
void AskAbout(ApiUnderTest& api, const Json& spec, const std::string& version,
              const std::vector<std::string>& objects) {
  const std::string group = "/apis/" + spec["group"].get<std::string>() + "/" + version;
  std::string path = group;
  if (spec["scope"] == "Namespaced") path += "/namespaces/default";
  path += "/" + spec["names"]["plural"].get<std::string>();
  for (const std::string& object : objects) {
    for (const char* validation : {"?fieldValidation=Strict", "?fieldValidation=Warn"}) {
      api.Ask("POST", path + validation, object);
    }
    api.Ask("POST", path, object, "application/yaml");
  }
  tahoma::rest::Request table;
  table.method = "GET";
  table.path = table.target = path;
  table.headers = {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}};
  MustServe(table, api.Ask(table));
  for (const std::string& about : {group, "/openapi/v3" + group}) {
    MustServe(tahoma::fuzz::RequestOf("GET", about), api.Ask("GET", about));
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  static ApiUnderTest api;
  api.BeginInput();
  std::vector<std::string> parts = Parts(input);
  if (parts.empty()) return;
  const auto made = api.Ask("POST", kCrds, parts[0], "application/yaml");
  parts.erase(parts.begin());
  if (made.status == 201) {
    const Json& spec = (*made.body)["spec"];
    for (const Json& version : spec["versions"]) {
      if (version["served"] == true) AskAbout(api, spec, version["name"], parts);
    }
  }
  constexpr std::size_t kOpenedAgain = 8;
  api.CheckObjects(std::hash<std::string_view>()(input) % kOpenedAgain == 0);
}
