#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "sim-node/podrunner/listening.h"
#include "sim-node/podrunner/spdy.h"

namespace tahoma::sim {
namespace {

TEST(ListenersTest, OnlyListeningSocketsAreFoundWithAddressAndUser) {
  const auto found = Listeners(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout\n"
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0\n"
      "   1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0\n"
      "   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0\n"
      "   3: nonsense\n",
      false);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].port, 8080);
  EXPECT_EQ(found[0].user, 1000U);
  EXPECT_EQ(found[1].port, 22);
  EXPECT_EQ(reinterpret_cast<const sockaddr_in&>(found[1].address).sin_addr.s_addr,
            htonl(INADDR_LOOPBACK));
}

class SpdyFramesTest : public testing::Test {
 protected:
  // A SYN_STREAM as a client writes it, whose headers are not compressed against the dictionary.
  std::string Open(std::uint32_t stream, const std::vector<std::string>& words) {
    const auto number = [](std::size_t value) {
      return std::string({'\0', '\0', static_cast<char>(value >> 8U), static_cast<char>(value)});
    };
    std::string text = number(words.size() / 2);
    for (const std::string& word : words) text += number(word.size()) + word;
    std::string packed(1024, '\0');
    out_.next_in = reinterpret_cast<Bytef*>(text.data());
    out_.avail_in = static_cast<uInt>(text.size());
    out_.next_out = reinterpret_cast<Bytef*>(packed.data());
    out_.avail_out = static_cast<uInt>(packed.size());
    deflate(&out_, Z_SYNC_FLUSH);
    packed.resize(packed.size() - out_.avail_out);
    std::string frame("\x80\x03\x00\x01\x00\x00", 6);
    frame += static_cast<char>((packed.size() + 10) >> 8U);
    frame += static_cast<char>(packed.size() + 10);
    return frame + number(stream) + std::string(6, '\0') + packed;
  }

  void SetUp() override { deflateInit(&out_, Z_DEFAULT_COMPRESSION); }
  void TearDown() override { deflateEnd(&out_); }

  z_stream out_{};
  std::vector<std::string> seen_;
  SpdyFrames frames_{
      {.opened =
           [this](std::uint32_t stream, const auto& headers) {
             std::string line = "open " + std::to_string(stream);
             for (const auto& [name, value] : headers) line += " " + name + "=" + value;
             seen_.push_back(line);
           },
       .data =
           [this](std::uint32_t stream, std::string_view bytes, bool end) {
             seen_.push_back("data " + std::to_string(stream) + " " + std::string(bytes) +
                             (end ? " end" : ""));
           },
       .reset =
           [this](std::uint32_t stream) { seen_.push_back("reset " + std::to_string(stream)); }}};
};

TEST_F(SpdyFramesTest, FramesAreReadInWhateverPieces) {
  // One after the other: the headers of both are one compressed text.
  std::string bytes = Open(1, {"streamType", "error", "port", "80"});
  bytes += Open(3, {"StreamType", "data"});
  bytes += std::string("\0\0\0\3\1\0\0\2hi", 10) +
           std::string("\x80\3\0\3\0\0\0\x08\0\0\0\3\0\0\0\5", 16) +
           std::string("\x80\3\0\6\0\0\0\4\0\0\0\7", 12);
  for (const char byte : bytes) ASSERT_TRUE(frames_.Receive({&byte, 1}).ok());
  EXPECT_EQ(seen_,
            (std::vector<std::string>{"open 1 port=80 streamtype=error", "open 3 streamtype=data",
                                      "data 3 hi end", "reset 3"}));
  EXPECT_EQ(frames_.TakeOut(), std::string("\x80\3\0\6\0\0\0\4\0\0\0\7", 12));
}

TEST_F(SpdyFramesTest, FramesThatAreTooLongOrBrokenAreRefused) {
  for (const std::string& bad :
       {std::string("\0\0\0\1\0\xff\xff\xff", 8), std::string("\x80\3\0\4\0\xff\xff\xff", 8),
        std::string("\x80\2\0\6\0\0\0\4\0\0\0\1", 12), std::string("\x80\3\0\1\0\0\0\2xx", 10),
        std::string("\x80\3\0\1\0\0\0\x10", 8) + std::string(16, 'x')}) {
    SpdyFrames frames({.opened = [](auto, const auto&) {},
                       .data = [](auto, auto, bool) {},
                       .reset = [](auto) {}});
    EXPECT_FALSE(frames.Receive(bad).ok());
  }
}

TEST_F(SpdyFramesTest, HeadersThatGrowWithoutEndAreRefused) {
  EXPECT_TRUE(frames_.Receive(Open(1, {"a", std::string(8000, 'x')})).ok());
  EXPECT_FALSE(frames_.Receive(Open(3, {"a", std::string(60000, 'x')})).ok());
}

}  // namespace
}  // namespace tahoma::sim
