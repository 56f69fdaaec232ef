// Server-side apply through the whole API server, one apply after the other. For every
// configuration: a second apply changes nothing, another manager may apply the same, and when the
// other manager gives its fields up, the object is as before.
//
// The input is a list of applies, with "%%" alone on a line after each: a line with the object's
// path, a line with the manager's name, and the configuration as YAML or JSON.

#include <cstdio>
#include <string>
#include <string_view>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/kube/url.h"
#include "tests/fuzz/api_under_test.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using tahoma::Json;
using tahoma::fuzz::Answered;
using tahoma::fuzz::ApiUnderTest;

constexpr const char* kYaml = "application/apply-patch+yaml";

Answered Apply(ApiUnderTest& api, const std::string& path, const std::string& manager, bool force,
               const std::string& body) {
  return api.Ask(
      "PATCH",
      path + "?fieldManager=" + tahoma::kube::PercentEncode(manager) + (force ? "&force=true" : ""),
      body, kYaml);
}

// Returns the object without managedFields and resourceVersion.
Json Said(Json object) {
  object["metadata"].erase("managedFields");
  object["metadata"].erase("resourceVersion");
  return object;
}

std::string WithoutFields(const Json& object) {
  return Json{{"apiVersion", object["apiVersion"]}, {"kind", object["kind"]}}.dump();
}

void Require(bool holds, const char* what, const Answered& first, const Answered& later) {
  if (holds) return;
  std::fprintf(stderr, "%s\nfirst: %s\nlater: %s\n", what, first.text.c_str(), later.text.c_str());
  TAHOMA_CHECK(holds);
}

void CheckApply(ApiUnderTest& api, const std::string& path, const std::string& manager,
                const std::string& body) {
  const Answered first = Apply(api, path, manager, true, body);
  // A configuration may name the only version that it is for.
  const bool for_any_version = body.find("resourceVersion") == std::string::npos;
  if ((first.status != 200 && first.status != 201) || !for_any_version) return;
  const Answered again = Apply(api, path, manager, false, body);
  Require(again.status == 200, "the same again is refused", first, again);
  Require(*again.body == *first.body, "the same again changes something", first, again);

  const Answered other = Apply(api, path, "other", false, body);
  // In a list that is owned as a whole, defaults filled in since are a difference.
  if (other.status == 409) return;
  Require(other.status == 200, "who agrees is refused", first, other);
  Require(Said(*other.body) == Said(*first.body), "who agrees changes something", first, other);
  const Answered given_up = Apply(api, path, "other", false, WithoutFields(*first.body));
  Require(given_up.status == 200, "giving up is refused", first, given_up);
  Require(Said(*given_up.body) == Said(*first.body), "giving up changes something", first,
          given_up);
}

std::string TakeLine(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string line(text.substr(0, end));
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace

void FuzzOne(std::string_view input) {
  static ApiUnderTest api;
  api.BeginInput();
  constexpr std::string_view kEnd = "\n%%\n";
  constexpr int kAppliesMax = 6;
  for (int i = 0; i < kAppliesMax && !input.empty(); ++i) {
    const std::size_t end = input.find(kEnd);
    std::string_view one = input.substr(0, end);
    input.remove_prefix(end == std::string_view::npos ? input.size() : end + kEnd.size());
    const std::string path = "/" + TakeLine(one);
    const std::string manager = TakeLine(one);
    if (manager == "other" || path.find('?') != std::string::npos) continue;
    CheckApply(api, path, manager, std::string(one));
  }
  api.CheckObjects(false);
}
