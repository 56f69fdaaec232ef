// The configuration of a claim in a Capacity Block.

#include "lib/driver/block_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/status.h"

namespace tahoma::hw {
namespace {

using ::testing::HasSubstr;

TEST(BlockConfigTest, IsReadAsItWasWritten) {
  const BlockConfig config{.reclaim_timestamp = 1764095485123};
  const std::string text = EncodeBlockConfig(config);
  EXPECT_EQ(text, R"({"apiVersion":"tahoma.dev/v1alpha1","kind":"CapacityBlockConfig",)"
                  R"("reclaimTimestamp":1764095485123})");
  EXPECT_EQ(*ParseBlockConfig(text), config);
}

TEST(BlockConfigTest, AnythingElseIsRefusedWithWhatWouldBeRight) {
  const auto refusal = [](const std::string& text) {
    const auto parsed = ParseBlockConfig(text);
    return parsed.ok() ? "" : std::string(Message(parsed.status()));
  };
  EXPECT_THAT(refusal("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("{"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("{}"),
              HasSubstr("apiVersion is missing; it must be \"tahoma.dev/v1alpha1\""));
  const std::string head = R"({"apiVersion":"tahoma.dev/v1alpha1","kind":)";
  EXPECT_THAT(refusal(head + R"("Gang"})"),
              HasSubstr("kind is \"Gang\"; it must be \"CapacityBlockConfig\""));
  const std::string block = head + R"("CapacityBlockConfig")";
  EXPECT_THAT(refusal(block + "}"), HasSubstr("reclaimTimestamp is missing; it must be millis"));
  for (const char* wrong : {"-1", "1.5", "\"1\"", "null", "18446744073709551615"}) {
    EXPECT_THAT(refusal(block + R"(,"reclaimTimestamp":)" + wrong + "}"),
                HasSubstr("reclaimTimestamp is " + std::string(wrong)));
  }
  EXPECT_THAT(refusal(block + R"(,"reclaimTimestamp":1,"reclaimTime":2})"),
              HasSubstr("unknown field \"reclaimTime\""));
  EXPECT_THAT(refusal(std::string(20'000, ' ')), HasSubstr("at most"));
}

}  // namespace
}  // namespace tahoma::hw
