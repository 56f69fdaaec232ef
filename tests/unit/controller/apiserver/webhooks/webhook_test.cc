// Which webhooks are asked, and how their answers are read. Texts: k8s.io/apiserver
// pkg/admission/plugin/webhook.

#include "controller/apiserver/webhooks/webhook.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "controller/apiserver/request/status_error.h"
#include "controller/apiserver/webhooks/review.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

Json ConfigurationOf(const Json& rule, const Json& more = Json::object()) {
  Json webhook = {{"name", "a.example.com"},
                  {"clientConfig", {{"url", "https://127.0.0.1:9443/a"}}},
                  {"rules", {rule}},
                  {"admissionReviewVersions", {"v2", "v1"}},
                  {"timeoutSeconds", 3}};
  webhook.update(more);
  return {{"metadata", {{"name", "c"}}}, {"webhooks", {webhook}}};
}

Webhook WebhookWith(const Json& rule, const Json& more = Json::object()) {
  return WebhooksOf(ConfigurationOf(rule, more)).at(0);
}

Json RuleOf(const std::string& resources, const std::string& scope = "*") {
  return {{"operations", {"CREATE"}},
          {"apiGroups", {"*"}},
          {"apiVersions", {"*"}},
          {"resources", {resources}},
          {"scope", scope}};
}

Subject SubjectOf(const std::string& resource, const std::string& subresource = "",
                  const std::string& name_space = "default") {
  return {.operation = "CREATE",
          .resource = {"g", "v1", resource},
          .kind = {"g", "v1", "Thing"},
          .subresource = subresource,
          .name = "a",
          .name_space = name_space};
}

TEST(WebhookTest, ARuleMatchesWhereAllItsListsDo) {
  const std::vector<std::string> operations = {"*", "CREATE", "UPDATE"};
  const std::vector<std::string> words = {"*", "g", "v1", "x"};
  const Subject subject = SubjectOf("things");
  for (const std::string& operation : operations) {
    for (const std::string& group : words) {
      for (const std::string& version : words) {
        for (const std::string resource : {"*", "things", "others", "things/status", "*/*"}) {
          const Json rule = {{"operations", {operation}},
                             {"apiGroups", {group}},
                             {"apiVersions", {version}},
                             {"resources", {resource}}};
          const bool expected = operation != "UPDATE" && (group == "*" || group == "g") &&
                                (version == "*" || version == "v1") &&
                                (resource == "*" || resource == "things" || resource == "*/*");
          EXPECT_EQ(WebhookWith(rule).Matches(subject, {"v1"}).has_value(), expected) << rule;
        }
      }
    }
  }
}

TEST(WebhookTest, SubresourcesMatchByTheirOwnPart) {
  struct Case {
    const char* rule;
    bool plain, status, scale;
  };
  for (const Case& one : std::vector<Case>{{"things", true, false, false},
                                           {"things/status", false, true, false},
                                           {"things/*", true, true, true},
                                           {"*/scale", false, false, true},
                                           {"*", true, false, false},
                                           {"*/*", true, true, true}}) {
    const Webhook webhook = WebhookWith(RuleOf(one.rule));
    EXPECT_EQ(webhook.Matches(SubjectOf("things"), {"v1"}).has_value(), one.plain) << one.rule;
    EXPECT_EQ(webhook.Matches(SubjectOf("things", "status"), {"v1"}).has_value(), one.status)
        << one.rule;
    EXPECT_EQ(webhook.Matches(SubjectOf("things", "scale"), {"v1"}).has_value(), one.scale)
        << one.rule;
  }
}

TEST(WebhookTest, TheScopeTellsNamespacedObjectsFromOthers) {
  Subject space = SubjectOf("namespaces", "", "a");
  space.resource.group = "";
  for (const auto& [scope, in_namespace, outside] :
       std::vector<std::tuple<std::string, bool, bool>>{
           {"*", true, true}, {"Namespaced", true, false}, {"Cluster", false, true}}) {
    const Webhook webhook = WebhookWith(RuleOf("*", scope));
    EXPECT_EQ(webhook.Matches(SubjectOf("things"), {}).has_value(), in_namespace) << scope;
    EXPECT_EQ(webhook.Matches(SubjectOf("things", "", ""), {}).has_value(), outside) << scope;
    EXPECT_EQ(webhook.Matches(space, {}).has_value(), outside) << scope;
  }
}

TEST(WebhookTest, AnEquivalentVersionMatchesUnlessThePolicyIsExact) {
  Json rule = RuleOf("things");
  rule["apiVersions"] = {"v1beta1"};
  const std::vector<std::string> versions = {"v1", "v1beta1"};
  EXPECT_EQ(WebhookWith(rule).Matches(SubjectOf("things"), versions), "v1beta1");
  EXPECT_EQ(WebhookWith(rule, {{"matchPolicy", "Exact"}}).Matches(SubjectOf("things"), versions),
            std::nullopt);
}

TEST(WebhookTest, TheSelectorTakesTheObjectAsItIsOrWas) {
  const Webhook webhook = WebhookWith(
      RuleOf("*"),
      {{"objectSelector",
        {{"matchExpressions", {{{"key", "a"}, {"operator", "In"}, {"values", {"1", "2"}}}}}}}});
  const auto with = [](const char* value) {
    return Json{{"metadata", {{"labels", {{"a", value}}}}}};
  };
  EXPECT_TRUE(webhook.TakesObject(with("1"), nullptr));
  EXPECT_TRUE(webhook.TakesObject(with("3"), with("2")));
  EXPECT_FALSE(webhook.TakesObject(with("3"), nullptr));
  EXPECT_FALSE(webhook.TakesObject(nullptr, with("3")));
}

TEST(WebhookTest, AConditionThatFailsFollowsTheFailurePolicy) {
  const Json conditions = {{"matchConditions",
                            {{{"name", "a"}, {"expression", "object.none == 1"}},
                             {{"name", "b"}, {"expression", "object.is == 1"}}}}};
  Json ignoring = conditions;
  ignoring["failurePolicy"] = "Ignore";
  const Json none;
  const Json object = {{"is", 1}};
  const auto failed = WebhookWith(RuleOf("*"), conditions).ConditionsHold(object, none, none);
  EXPECT_EQ(Message(failed.status()),
            "expression 'object.none == 1' resulted in error: no such key: none");
  EXPECT_FALSE(*WebhookWith(RuleOf("*"), ignoring).ConditionsHold(object, none, none));
  // One that is false decides, whatever fails.
  EXPECT_FALSE(*WebhookWith(RuleOf("*"), conditions).ConditionsHold({{"is", 2}}, none, none));
}

TEST(WebhookTest, TheQuestionIsInTheVersionThatTheWebhookWants) {
  const Webhook webhook = WebhookWith(RuleOf("*"));
  const Json review =
      ReviewOf(webhook, SubjectOf("things", "status"), "v2", "u", {{"a", 1}}, nullptr);
  EXPECT_EQ(review["apiVersion"], "admission.k8s.io/v1");
  const Json& request = review["request"];
  EXPECT_EQ(request["resource"]["version"], "v2");
  EXPECT_EQ(request["kind"]["version"], "v2");
  EXPECT_EQ(request["requestResource"]["version"], "v1");
  EXPECT_EQ(request["subResource"], "status");
  EXPECT_EQ(request["object"], (Json{{"a", 1}}));
  EXPECT_EQ(request["oldObject"], nullptr);
}

// Returns why the answer is none; empty when it is one.
std::string WhyWrong(const Json& response, bool mutating = true) {
  Json review = {{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}};
  if (!response.is_null()) review["response"] = response;
  const auto verdict = ReadVerdict(review.dump(), WebhookWith(RuleOf("*")), mutating, "u");
  return verdict.ok() ? "" : std::string(Message(verdict.status()));
}

TEST(WebhookTest, WrongAnswersAreToldInKubernetesWords) {
  EXPECT_EQ(WhyWrong(nullptr), "webhook response was absent");
  EXPECT_EQ(WhyWrong({{"uid", "w"}}), "expected response.uid=\"u\", got \"w\"");
  EXPECT_EQ(WhyWrong({{"uid", "u"}, {"patch", "W10="}}),
            "webhook returned response.patch but not response.patchType");
  EXPECT_EQ(WhyWrong({{"uid", "u"}, {"patchType", "JSONPatch"}}),
            "webhook returned response.patchType but not response.patch");
  EXPECT_EQ(WhyWrong({{"uid", "u"}, {"patch", "W10="}, {"patchType", "Merge"}}),
            "unsupported patch type \"Merge\"");
  EXPECT_EQ(WhyWrong({{"uid", "u"}, {"patch", "e30="}, {"patchType", "JSONPatch"}}),
            "received undecodable patch in webhook response: not a JSON array");
  EXPECT_EQ(WhyWrong({{"uid", "u"}, {"patch", "W10="}}, false),
            "validating webhook may not return response.patch");
  EXPECT_EQ(WhyWrong({{"uid", "u"}, {"patch", "W10="}, {"patchType", "JSONPatch"}}), "");
  EXPECT_FALSE(ReadVerdict("{", WebhookWith(RuleOf("*")), true, "u").ok());
}

TEST(WebhookTest, ARefusalAlwaysHasACodeOfAnError) {
  for (const auto& [code, expected] : std::vector<std::pair<int, int>>{
           {0, 400}, {200, 400}, {422, 422}, {503, 503}, {1000, 400}}) {
    const Json review = {
        {"apiVersion", "admission.k8s.io/v1"},
        {"kind", "AdmissionReview"},
        {"response",
         {{"uid", "u"}, {"allowed", false}, {"status", {{"code", code}, {"reason", "Invalid"}}}}}};
    const auto verdict = ReadVerdict(review.dump(), WebhookWith(RuleOf("*")), true, "u");
    const Json status = StatusObject(verdict->refusal);
    EXPECT_EQ(status["code"], expected);
    EXPECT_EQ(status["message"], "admission webhook \"a.example.com\" denied the request: Invalid");
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
