// Every field of real objects, with every other JSON type in its place, through every verb: the
// answer is a success or blames the client, and the object takes the next write.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "controller/apiserver/controllers/controllers.h"
#include "controller/apiserver/http/in_process_transport.h"
#include "tests/support/api_fixture.h"
#include "tests/unit/controller/apiserver/verbs/type_swap_objects.h"

namespace tahoma::controller::apiserver {
namespace {

using testing::Answer;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Path = std::vector<std::string>;  // of names and indexes

// A value of each JSON type, and numbers that do not fit where others do.
const std::vector<Json>& OtherValues() {
  static const auto* const values = new std::vector<Json>{nullptr,
                                                          true,
                                                          7,
                                                          -1,
                                                          1.5,
                                                          UINT64_MAX,
                                                          "",
                                                          "text",
                                                          1e300,
                                                          Json::array(),
                                                          Json::object(),
                                                          Json::array({nullptr}),
                                                          Json::array({"text"}),
                                                          Json::array({Json::object()}),
                                                          Json{{"name", nullptr}},
                                                          Json{{"name", "text"}},
                                                          Json{{"name", 7}}};
  return *values;
}

void AddPaths(const Json& value, const Path& path, std::vector<Path>& paths) {
  if (!path.empty()) paths.push_back(path);
  const auto below = [&](const std::string& step, const Json& child) {
    Path longer = path;
    longer.push_back(step);
    AddPaths(child, longer, paths);
  };
  if (value.is_object()) {
    for (const auto& [name, child] : value.items()) below(name, child);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) below(std::to_string(i), value[i]);
  }
}

Json& At(Json& object, const Path& path) {
  Json* at = &object;
  for (const std::string& step : path) {
    at = at->is_array() ? &(*at)[std::stoul(step)] : &(*at)[step];
  }
  return *at;
}

std::string Pointer(const Path& path) {
  std::string pointer;
  for (const std::string& step : path) {
    pointer += '/';
    for (const char c : step) pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return pointer;
}

// The members above the place, without the rest of the object; lists are whole.
Json PatchOf(const Json& object, const Path& path, const Json& value) {
  Json patch = Json::object();
  Json* into = &patch;
  const Json* from = &object;
  for (std::size_t i = 0; i < path.size(); ++i) {
    from = &from->at(path[i]);
    into = &(*into)[path[i]];
    if (i + 1 == path.size()) {
      *into = value;
    } else if (from->is_array()) {
      *into = *from;
      At(*into, Path(path.begin() + static_cast<std::ptrdiff_t>(i) + 1, path.end())) = value;
      return patch;
    }
  }
  return patch;
}

class TypeSwapTest : public testing::ApiFixture, public ::testing::WithParamInterface<TypedObject> {
 protected:
  TypeSwapTest() {
    controllers_ = std::make_unique<Controllers>(
        [this] { return server_->Kinds(); }, server_->objects(), api_,
        ControllerOptions{.log = [this](const std::string& line) { told_.push_back(line); }});
    TAHOMA_CHECK(Call("POST", kClaimTemplatePath, Parsed(kClaimTemplate)).status == 201);
    const Answer made = Call("POST", GetParam().collection, Object());
    TAHOMA_CHECK(made.status == 201 || made.status == 409);
  }

  static Json Parsed(const char* text) { return ParseJson(text); }
  static Json Object() { return Parsed(GetParam().text); }
  std::string Target() const {
    return GetParam().collection + "/" + Object()["metadata"]["name"].get<std::string>();
  }
  // Returns the object in the form of a PUT.
  Json Current() {
    Json current = Call("GET", Target()).body;
    current["metadata"].erase("managedFields");
    return current;
  }

  void Expect(const Answer& answer, std::string_view how, const Path& path, const Json& value) {
    ++asked_;
    EXPECT_TRUE(answer.status / 100 == 2 || answer.status / 100 == 4)
        << how << " of " << Pointer(path) << " = " << value << ": " << answer.status << " "
        << answer.text.substr(0, 400);
  }
  // Puts the object back, and checks that it takes a write.
  void Restore() {
    ++writes_;
    const Answer live = Call("GET", Target());
    if (live.status == 404) {
      ASSERT_EQ(Call("POST", GetParam().collection, Object()).status, 201);
    } else {
      Json whole = Object();
      whole["metadata"]["resourceVersion"] = live.version();
      whole["metadata"]["labels"]["write"] = std::to_string(writes_);
      const Answer put = Call("PUT", Target(), whole);
      if (put.status != 200) {  // an immutable field was changed: make a new object
        Patch(Target(), "merge-patch+json", {{"metadata", {{"finalizers", nullptr}}}});
        Call("DELETE", Target() + "?gracePeriodSeconds=0&propagationPolicy=Background");
        ASSERT_EQ(Call("POST", GetParam().collection, Object()).status, 201)
            << Call("GET", Target()).text;
      }
    }
    ASSERT_EQ(
        Patch(Target(), "merge-patch+json", {{"metadata", {{"labels", {{"a", "b"}}}}}}).status,
        200);
  }
  // Runs all readers of objects in this process: none may crash.
  void Read() {
    controllers_->Step(clock_.WallNow(), 200);
    EXPECT_THAT(told_, IsEmpty());
    const Answer table = Call("GET", GetParam().collection, "",
                              {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}});
    EXPECT_EQ(table.status, 200) << table.text.substr(0, 400);
  }

  InProcessTransport api_{*server_, clock_, "controllers"};
  std::unique_ptr<Controllers> controllers_;
  std::vector<std::string> told_;
  int asked_ = 0;
  int writes_ = 0;
};

TEST_P(TypeSwapTest, CreatesAndPutsBlameTheClient) {
  std::vector<Path> paths;
  AddPaths(Object(), {}, paths);
  for (const Path& path : paths) {
    for (const Json& value : OtherValues()) {
      Json swapped = Object();
      At(swapped, path) = value;
      const bool is_name = path == Path{"metadata"} || path == Path{"metadata", "name"};
      if (!is_name) swapped["metadata"]["name"] = "swapped";
      const Answer made = Call("POST", GetParam().collection, swapped);
      Expect(made, "create", path, value);
      if (made.status == 201) {
        const std::string target = GetParam().collection + "/" + made.name();
        Expect(Call("GET", target), "get", path, value);
        Expect(Call("PUT", target + "/status", made.body), "put status", path, value);
        Patch(target, "merge-patch+json", {{"metadata", {{"finalizers", nullptr}}}});
        Expect(Call("DELETE", target + "?gracePeriodSeconds=0&propagationPolicy=Background"),
               "delete", path, value);
      }
      Json put = Current();
      At(put, path) = value;
      Expect(Call("PUT", Target(), put), "put", path, value);
      Expect(Call("PUT", Target() + "/status", put), "put status", path, value);
    }
    Read();
    ASSERT_NO_FATAL_FAILURE(Restore()) << Pointer(path);
  }
  RecordProperty("requests", asked_);
}

TEST_P(TypeSwapTest, PatchesAndAppliesBlameTheClient) {
  std::vector<Path> paths;
  AddPaths(Object(), {}, paths);
  const Json whole = Object();
  for (const Path& path : paths) {
    for (const Json& value : OtherValues()) {
      const Json patch = PatchOf(whole, path, value);
      const Json replace =
          Json::array({{{"op", "replace"}, {"path", Pointer(path)}, {"value", value}}});
      for (const std::string& target : {Target(), Target() + "/status"}) {
        Expect(Patch(target, "merge-patch+json", patch), "merge patch", path, value);
        Expect(Patch(target, "json-patch+json", replace), "json patch", path, value);
        Expect(Patch(target, "strategic-merge-patch+json", patch), "strategic", path, value);
        Json applied = whole;
        At(applied, path) = value;
        Expect(Patch(target + "?fieldManager=m&force=true", "apply-patch+yaml", applied), "apply",
               path, value);
      }
    }
    Read();
    ASSERT_NO_FATAL_FAILURE(Restore()) << Pointer(path);
  }
}

INSTANTIATE_TEST_SUITE_P(OfAllKinds, TypeSwapTest, ::testing::ValuesIn(TypedObjects()),
                         [](const auto& test) { return std::string(test.param.name); });

class MetadataTypesTest : public testing::ApiFixture {};

TEST_F(MetadataTypesTest, FinalizersThatAreATextAreRefusedInKubernetesWords) {
  const std::string gangs = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs";
  ASSERT_EQ(Call("POST", gangs, GangOf("g")).status, 201);
  Json wrong = GangOf("h");
  wrong["metadata"]["finalizers"] = "x";
  const Answer made = Call("POST", gangs, wrong);
  EXPECT_EQ(made.status, 400);
  EXPECT_EQ(made.message(),
            "Gang in version \"v1alpha1\" cannot be handled as a Gang: json: cannot unmarshal "
            "string into Go struct field ObjectMeta.finalizers of type []string");
  const Answer patched =
      Patch(gangs + "/g", "merge-patch+json", {{"metadata", {{"finalizers", "x"}}}});
  EXPECT_EQ(patched.status, 422);
  EXPECT_THAT(patched.message(), HasSubstr("cannot unmarshal string into Go struct field "));
  EXPECT_EQ(
      Patch(gangs + "/g", "merge-patch+json", {{"metadata", {{"labels", {{"a", "b"}}}}}}).status,
      200);
  const Answer pod = Call("POST", "/api/v1/namespaces/default/pods",
                          {{"metadata", {{"name", "p"}, {"labels", {{"a", 1}}}}}});
  EXPECT_EQ(pod.status, 400);
  EXPECT_THAT(pod.message(), HasSubstr("json: cannot unmarshal number into Go struct field "
                                       "ObjectMeta.metadata.labels of type string"));
}

TEST_F(MetadataTypesTest, BodiesThatAreNoObjectsOfAKindAreTypedToo) {
  const std::string pods = "/api/v1/namespaces/default/pods";
  ASSERT_EQ(Call("POST", pods, PodOf("p")).status, 201);
  const std::vector<std::pair<std::string, Json>> bodies = {
      {"/binding",
       {{"metadata", {{"labels", {{"a", "b"}}}, {"uid", "u"}}},
        {"target", {{"kind", "Node"}, {"name", "n"}, {"uid", "u"}}}}},
      {"/eviction",
       {{"metadata", {{"name", "p"}}},
        {"deleteOptions",
         {{"gracePeriodSeconds", 5}, {"preconditions", {{"uid", "u"}}}, {"dryRun", {"All"}}}}}},
      {"",
       {{"kind", "DeleteOptions"},
        {"gracePeriodSeconds", 5},
        {"preconditions", {{"uid", "u"}, {"resourceVersion", "1"}}},
        {"propagationPolicy", "Orphan"},
        {"orphanDependents", true},
        {"dryRun", {"All"}}}}};
  for (const auto& [subresource, body] : bodies) {
    std::vector<Path> paths;
    AddPaths(body, {}, paths);
    for (const Path& path : paths) {
      for (const Json& value : OtherValues()) {
        Json swapped = body;
        At(swapped, path) = value;
        const Answer answer =
            Call(subresource.empty() ? "DELETE" : "POST", pods + "/p" + subresource, swapped);
        EXPECT_TRUE(answer.status / 100 == 2 || answer.status / 100 == 4)
            << subresource << Pointer(path) << " = " << value << ": " << answer.text;
        Call("DELETE", pods + "/p?gracePeriodSeconds=0");
        Call("POST", pods, PodOf("p"));
      }
    }
  }
  const Answer answer = Call("DELETE", pods + "/p", {{"gracePeriodSeconds", "5"}});
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.message(), HasSubstr("cannot unmarshal string into Go struct field "
                                          "DeleteOptions.gracePeriodSeconds of type int64"));
}

}  // namespace
}  // namespace tahoma::controller::apiserver
