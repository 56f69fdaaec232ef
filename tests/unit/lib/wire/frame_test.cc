#include "lib/wire/frame.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::wire {
namespace {

std::string Bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

TEST(FrameTest, BytesAreAsTheFormatPageSays) {
  const auto bytes = EncodeFrame({.header = "{}", .payload = "abc"});
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(*bytes, "TAHO" + Bytes({1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}) + "{}abc");
}

TEST(FrameTest, ComesBackAsItWas) {
  const Frame frame = {.header = R"({"id":7})", .payload = std::string(100'000, '\0')};
  const auto bytes = EncodeFrame(frame);
  ASSERT_TRUE(bytes.ok());
  const auto back = DecodeFrame(*bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, frame);
}

TEST(FrameTest, HeaderAndPayloadMayBeAsLongAsTheirBoundsAndNoLonger) {
  Frame frame = {.header = std::string(kMaxHeaderBytes, ' '), .payload = ""};
  EXPECT_TRUE(EncodePrefix(frame).ok());
  frame.header += ' ';
  EXPECT_EQ(Message(EncodePrefix(frame).status()),
            "wire: the frame's header has 1048577 bytes; at most 1048576 are allowed");
  frame = {.header = "", .payload = std::string(kMaxPayloadBytes, ' ')};
  EXPECT_TRUE(EncodePrefix(frame).ok());
  frame.payload += ' ';
  EXPECT_EQ(EncodePrefix(frame).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(FrameTest, EveryWrongFieldOfThePrefixIsNamed) {
  const std::string good = *EncodePrefix({.header = "{}", .payload = ""});
  const auto with = [&](std::size_t at, int value) {
    std::string changed = good;
    changed[at] = static_cast<char>(value);
    const auto decoded = DecodePrefix(changed);
    return decoded.ok() ? std::string() : std::string(Message(decoded.status()));
  };
  EXPECT_EQ(with(0, 'G'), "wire: a frame begins with bytes 4741484f; expected 5441484f (\"TAHO\")");
  EXPECT_EQ(with(4, 2), "wire: the peer speaks version 2; this program speaks version 1");
  EXPECT_EQ(with(6, 1), "wire: the frame's reserved field is 1; expected 0");
  EXPECT_EQ(with(11, 0x80),
            "wire: the frame's header has 2147483650 bytes; at most 1048576 are "
            "allowed");
  EXPECT_EQ(with(15, 0x80),
            "wire: the frame's payload has 2147483648 bytes; at most 67108864 are "
            "allowed");
}

TEST(FrameTest, CutAnywhereIsOutOfRangeAndLongerIsInvalid) {
  const std::string whole = *EncodeFrame({.header = R"({"id":1})", .payload = "payload"});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(absl::IsOutOfRange(DecodeFrame(whole.substr(0, size)).status())) << size;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeFrame(whole + "x").status()));
}

// Random damage is found or harmless, never a crash; a frame that still decodes encodes to the
// same bytes again.
TEST(FrameTest, RandomMutationsNeverCrash) {
  Rng rng(20261121);
  const std::string whole = *EncodeFrame({.header = R"({"id":1,"method":"m"})", .payload = "xyz"});
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = whole;
    const std::uint64_t changes = 1 + rng.Below(4);
    for (std::uint64_t i = 0; i < changes; ++i) {
      bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Below(256));
    }
    bytes.resize(rng.Below(bytes.size() + 1));
    const auto decoded = DecodeFrame(bytes);
    if (!decoded.ok()) continue;
    EXPECT_EQ(*EncodeFrame(*decoded), bytes);
  }
}

}  // namespace
}  // namespace tahoma::wire
