// Tests that bytes that are not UTF-8 are refused wherever a client can put them, and never stored.

#include <gmock/gmock.h>

#include <string>

#include "lib/base/utf8.h"
#include "tests/support/api_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

using testing::Answer;
using ::testing::HasSubstr;

const std::string kMaps = "/api/v1/namespaces/default/configmaps";

class TextTest : public testing::ApiFixture {};

TEST_F(TextTest, PathsAndQueriesMustBeUtf8) {
  for (const std::string& target :
       {kMaps + "/%ff", kMaps + "/a%c3", std::string("/api/v1/namespaces/%ff/configmaps/a"),
        kMaps + "?labelSelector=%ff", kMaps + "?%ff=1",
        kMaps + "?fieldSelector=metadata.name%3D%fe"}) {
    for (const char* method : {"GET", "DELETE"}) {
      const Answer answer = Call(method, target);
      EXPECT_EQ(answer.status, 400) << target << " " << answer.text;
      EXPECT_THAT(answer.message(), HasSubstr("not UTF-8"));
    }
  }
  const Answer answer = Call("PATCH", kMaps + "/a?fieldManager=%ff", "{}",
                             {{"Content-Type", "application/merge-patch+json"}});
  EXPECT_EQ(answer.status, 400) << answer.text;
}

TEST_F(TextTest, BodiesMustBeUtf8) {
  const std::string json = "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"\xff\"}}";
  const std::string yaml = "metadata: {name: a}\ndata: {k: \"\xff\"}\n";
  EXPECT_EQ(Call("POST", kMaps, json).status, 400);
  const Answer refused = Call("POST", kMaps, yaml, {{"Content-Type", "application/yaml"}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.message(), HasSubstr("the text is not UTF-8"));
  EXPECT_EQ(Call("PATCH", kMaps + "/a?fieldManager=m", yaml,
                 {{"Content-Type", "application/apply-patch+yaml"}})
                .status,
            400);
  ASSERT_EQ(Call("POST", kMaps, ConfigMapOf("a", "1")).status, 201);
  for (const char* type : {"merge-patch", "json-patch", "strategic-merge-patch"}) {
    EXPECT_EQ(Call("PATCH", kMaps + "/a", json,
                   {{"Content-Type", fmt::format("application/{}+json", type)}})
                  .status,
              400);
  }
}

TEST_F(TextTest, AManagerIsNamedByWholePrintableCharactersOfTheUserAgent) {
  const std::string euro = "\xe2\x82\xac";
  struct Case {
    std::string agent;
    std::string manager;
  };
  int i = 0;
  for (const Case& c :
       std::vector<Case>{{std::string(127, 'a') + euro + "/1", std::string(127, 'a')},
                         {std::string(125, 'a') + euro + "b/1", std::string(125, 'a') + euro},
                         {"x\xff\x80y/1", "xy"},
                         {"a\x01\tb/1", "ab"},
                         {"\xff/1", "unknown"},
                         {"/1", "unknown"}}) {
    const std::string name = fmt::format("m{}", i++);
    rest::Request request;
    request.method = "POST";
    request.target = request.path = kMaps;
    request.headers = {{"User-Agent", c.agent}};
    request.body = ConfigMapOf(name, "1").dump();
    const rest::Response made = server_->Handle(request);
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_TRUE(IsUtf8(made.body));
    EXPECT_EQ(ParseJson(made.body).at("/metadata/managedFields/0/manager"_json_pointer), c.manager);
    EXPECT_EQ(Patch(kMaps + "/" + name, "merge-patch+json", {{"data", {{"key", "2"}}}}).status,
              200);
  }
}

// A body is cut for the message about it, never within a character.
TEST_F(TextTest, MessagesQuoteWholeCharacters) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "\xe2\x82\xac";
  for (int shift = 0; shift < 3; ++shift) {
    const Answer answer =
        Call("POST", "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs",
             Json{{"a", std::string(static_cast<std::size_t>(shift), 'x') + text}});
    EXPECT_EQ(answer.status, 400);
    EXPECT_TRUE(IsUtf8(answer.text));
    EXPECT_THAT(answer.message(), ::testing::Not(HasSubstr("\xef\xbf\xbd")));
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
