// pods/ephemeralcontainers: containers are added to a pod, and nothing else is changed.

#include <gmock/gmock.h>

#include <string>

#include "lib/base/status.h"
#include "tests/support/api_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

using testing::Answer;
using ::testing::HasSubstr;

const std::string kPods = "/api/v1/namespaces/default/pods";
const std::string kPath = kPods + "/p/ephemeralcontainers";
const std::string kStrategic = "strategic-merge-patch+json";

class EphemeralContainersTest : public testing::ApiFixture {
 protected:
  EphemeralContainersTest() { EXPECT_EQ(Call("POST", kPods, PodOf("p")).status, 201); }

  static Json Debugger(const std::string& name, const Json& more = Json::object()) {
    Json container = {{"name", name}, {"image", "busybox"}};
    for (const auto& [key, value] : more.items()) container[key] = value;
    return container;
  }
  Answer Add(const Json& container) {
    return Patch(kPath, kStrategic,
                 {{"spec", {{"ephemeralContainers", Json::array({container})}}}});
  }
  Json Stored() { return Call("GET", kPods + "/p").body; }
};

TEST_F(EphemeralContainersTest, APatchAddsOneAfterTheOtherWithDefaults) {
  const Answer first = Add(Debugger("a", {{"command", {"sh"}}, {"stdin", true}, {"tty", true}}));
  ASSERT_EQ(first.status, 200) << first.text;
  EXPECT_EQ(first.body["spec"]["ephemeralContainers"],
            Json::array({Debugger("a", {{"command", {"sh"}},
                                        {"stdin", true},
                                        {"tty", true},
                                        {"imagePullPolicy", "Always"},
                                        {"resources", Json::object()},
                                        {"terminationMessagePath", "/dev/termination-log"},
                                        {"terminationMessagePolicy", "File"}})}));
  EXPECT_EQ(first.body["metadata"]["generation"], 2);
  ASSERT_EQ(Add(Debugger("b", {{"targetContainerName", "main"}})).status, 200);
  EXPECT_EQ(Stored()["spec"]["ephemeralContainers"].size(), 2U);
  EXPECT_EQ(Call("GET", kPath).body, Stored());
  const Json owners = Stored()["metadata"]["managedFields"];
  EXPECT_EQ(owners.back()["subresource"], "ephemeralcontainers") << owners;
}

TEST_F(EphemeralContainersTest, APutReplacesTheListAndNothingElse) {
  Json pod = Stored();
  pod["spec"]["ephemeralContainers"] = Json::array({Debugger("a")});
  pod["spec"]["containers"][0]["image"] = "other";
  pod["spec"]["nodeName"] = "elsewhere";
  pod["status"]["phase"] = "Failed";
  pod["metadata"]["labels"]["a"] = "b";
  const Answer put = Call("PUT", kPath, pod);
  ASSERT_EQ(put.status, 200) << put.text;
  EXPECT_EQ(put.body["spec"]["containers"][0]["image"], "train");
  EXPECT_FALSE(put.body["spec"].contains("nodeName"));
  EXPECT_EQ(put.body["status"]["phase"], "Pending");
  EXPECT_EQ(put.body["metadata"]["labels"]["a"], "b") << "as Kubernetes";
  EXPECT_EQ(put.body["spec"]["ephemeralContainers"].size(), 1U);
}

TEST_F(EphemeralContainersTest, WhatIsThereIsNeitherChangedNorRemoved) {
  ASSERT_EQ(Add(Debugger("a")).status, 200);
  const Answer changed = Add(Debugger("a", {{"image", "other"}}));
  EXPECT_EQ(changed.status, 422);
  EXPECT_EQ(changed.message(),
            "Pod \"p\" is invalid: spec.ephemeralContainers: Forbidden: existing ephemeral "
            "containers \"a\" may not be changed");
  Json pod = Stored();
  pod["spec"].erase("ephemeralContainers");
  EXPECT_THAT(Call("PUT", kPath, pod).message(), HasSubstr("\"a\" may not be removed"));
  pod["spec"]["ephemeralContainers"] = Json::array({Debugger("b")});
  EXPECT_THAT(Call("PUT", kPath, pod).message(), HasSubstr("\"a\" may not be removed"));
  EXPECT_EQ(Stored()["spec"]["ephemeralContainers"].size(), 1U);
}

TEST_F(EphemeralContainersTest, OnlyTheSubresourceAddsSome) {
  Json pod = PodOf("q");
  pod["spec"]["ephemeralContainers"] = Json::array({Debugger("a")});
  EXPECT_THAT(Call("POST", kPods, pod).message(),
              HasSubstr("spec.ephemeralContainers: Forbidden: cannot be set on create"));
  pod = Stored();
  pod["spec"]["ephemeralContainers"] = Json::array({Debugger("a")});
  EXPECT_THAT(Call("PUT", kPods + "/p", pod).message(),
              HasSubstr("pod updates may not change fields other than"));
  ASSERT_EQ(Add(Debugger("a")).status, 200);
  pod = Stored();
  pod["metadata"]["labels"]["a"] = "b";
  EXPECT_EQ(Call("PUT", kPods + "/p", pod).status, 200) << "which leaves them as they are";
}

TEST_F(EphemeralContainersTest, WhatAnEphemeralContainerCannotHaveIsNamed) {
  const auto message = [&](const Json& more) { return Add(Debugger("a", more)).message(); };
  const std::string forbidden = ": Forbidden: cannot be set for an Ephemeral Container";
  const Json probe = {{"exec", {{"command", {"true"}}}}};
  const std::vector<std::pair<std::string, Json>> fields = {
      {"ports", {{{"containerPort", 80}}}},
      {"resources", {{"limits", {{"cpu", "1"}}}}},
      {"livenessProbe", probe},
      {"readinessProbe", probe},
      {"startupProbe", probe},
      {"restartPolicy", "Always"},
      {"lifecycle", {{"preStop", probe}}}};
  for (const auto& [field, value] : fields) {
    EXPECT_THAT(message({{field, value}}),
                HasSubstr(fmt::format("spec.ephemeralContainers[0].{}{}", field, forbidden)));
  }
  EXPECT_THAT(message({{"image", ""}}),
              HasSubstr("spec.ephemeralContainers[0].image: Required value"));
  EXPECT_THAT(message({{"name", "main"}}),
              HasSubstr("spec.ephemeralContainers[0].name: Duplicate value: \"main\""));
  EXPECT_THAT(message({{"name", "A_B"}}), HasSubstr("spec.ephemeralContainers[0].name: Invalid"));
  EXPECT_THAT(message({{"targetContainerName", "none"}}),
              HasSubstr("spec.ephemeralContainers[0].targetContainerName: Not found: \"none\""));
  EXPECT_THAT(message({{"volumeMounts", {{{"name", "v"}, {"mountPath", "/v"}}}}}),
              HasSubstr("spec.ephemeralContainers[0].volumeMounts[0].name: Not found: \"v\""));
  EXPECT_FALSE(Stored()["spec"].contains("ephemeralContainers"));
}

TEST_F(EphemeralContainersTest, StaticPodsHaveNone) {
  Json pod = PodOf("mirror");
  pod["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "x";
  ASSERT_EQ(Call("POST", kPods, pod).status, 201);
  const Answer answer = Patch(kPods + "/mirror/ephemeralcontainers", kStrategic,
                              {{"spec", {{"ephemeralContainers", Json::array({Debugger("a")})}}}});
  EXPECT_EQ(answer.status, 422);
  EXPECT_THAT(answer.message(), HasSubstr("static pods do not support ephemeral containers"));
}

TEST_F(EphemeralContainersTest, FiftyAreTakenAndAHundredAreTooMany) {
  const auto add = [&](int first, int last) {
    Json list = Json::array();
    for (int i = first; i < last; ++i) list.push_back(Debugger("d" + std::to_string(i)));
    return Patch(kPath, kStrategic, {{"spec", {{"ephemeralContainers", list}}}});
  };
  EXPECT_EQ(add(0, 50).status, 200);
  EXPECT_THAT(add(50, 100).message(),
              HasSubstr("spec.ephemeralContainers: Too many: 100: must have at most 64 items"));
  EXPECT_EQ(Stored()["spec"]["ephemeralContainers"].size(), 50U);
}

TEST_F(EphemeralContainersTest, OtherVerbsAndWrongTypesAreRefused) {
  EXPECT_EQ(Call("POST", kPath, PodOf("p")).status, 405);
  EXPECT_EQ(Call("DELETE", kPath).status, 405);
  EXPECT_EQ(Call("GET", kPods + "/none/ephemeralcontainers").status, 404);
  for (const char* value : {"7", "\"a\"", "{}", "[7]", "[null]", "[[]]", "[{\"name\": 7}]",
                            "[{\"name\": null}]", "[{\"name\": \"a\", \"image\": {}}]",
                            "[{\"name\": \"a\", \"image\": \"i\", \"command\": \"sh\"}]",
                            "[{\"name\": \"a\", \"image\": \"i\", \"stdin\": \"yes\"}]"}) {
    for (const char* type : {"strategic-merge-patch+json", "merge-patch+json"}) {
      const Answer answer =
          Patch(kPath, type,
                ParseJson(fmt::format(R"({{"spec": {{"ephemeralContainers": {}}}}})", value)));
      EXPECT_EQ(answer.status / 100, 4) << type << " " << value << ": " << answer.text;
    }
  }
  for (const char* spec : {"7", "null", "[]", "\"a\""}) {
    const Answer answer =
        Patch(kPath, "merge-patch+json", ParseJson(fmt::format(R"({{"spec": {}}})", spec)));
    EXPECT_NE(answer.status / 100, 5) << spec << ": " << answer.text;
  }
  EXPECT_EQ(Stored()["spec"]["containers"][0]["image"], "train");
}

}  // namespace
}  // namespace tahoma::controller::apiserver
