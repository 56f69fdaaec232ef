// A thousand watches on the controller that users run, some of which nobody reads: writes go on,
// whoever reads sees every event, whoever does not is sent away, and neither memory nor threads
// grow without bound.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "tests/integration/standalone.h"
#include "tests/support/patience.h"
#include "tests/support/temp_dir.h"

namespace tahoma::testing {
namespace {

constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
constexpr rlim_t kUsualFiles = 1024;
constexpr rlim_t kNeededFiles = 1400;

// One watch of one ConfigMap, by a socket of its own.
class Watcher {
 public:
  // `receive_bytes` of the kernel's buffer; 0: as usual.
  Watcher(const std::string& address, const std::string& name, int receive_bytes = 0) {
    const std::size_t colon = address.rfind(':');
    sockaddr_in server{};
    server.sin_family = AF_INET;
    server.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
    TAHOMA_CHECK(inet_pton(AF_INET, address.substr(0, colon).c_str(), &server.sin_addr) == 1);
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TAHOMA_CHECK(fd_ >= 0);
    if (receive_bytes > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    TAHOMA_CHECK(connect(fd_, reinterpret_cast<sockaddr*>(&server), sizeof server) == 0);
    const std::string request =
        fmt::format("GET {}?watch=1&fieldSelector=metadata.name%3D{} HTTP/1.1\r\nHost: {}\r\n\r\n",
                    kMaps, name, address);
    TAHOMA_CHECK(write(fd_, request.data(), request.size()) ==
                 static_cast<ssize_t>(request.size()));
  }
  ~Watcher() { close(fd_); }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Reads until `text` has come, the server has ended the connection, or half a minute has passed
  // without a byte. Keeps only what may be the beginning of another `text`.
  bool ReadUntil(const std::string& text) {
    while (tail_.find(text) == std::string::npos) {
      tail_.erase(0, tail_.size() - std::min(tail_.size(), kTail));
      if (!ReadMore()) return false;
    }
    return true;
  }
  // Reads all there is until the server ends the connection; the last of it.
  std::string ReadToEnd() {
    while (ReadMore()) tail_.erase(0, tail_.size() - std::min(tail_.size(), kTail));
    return tail_;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kTail = 4096;

  bool ReadMore() {
    pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, 30'000) <= 0) return false;
    std::array<char, 1 << 16> buffer;
    const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
    if (got <= 0) return false;
    bytes_ += static_cast<std::size_t>(got);
    tail_.append(buffer.data(), static_cast<std::size_t>(got));
    return true;
  }

  int fd_ = -1;
  std::string tail_;
  std::size_t bytes_ = 0;
};

class WatchersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_max < kNeededFiles) {
      GTEST_SKIP() << "a process may open only " << files.rlim_max << " files here";
    }
    // The controller starts with the limit that shells usually have.
    files.rlim_cur = kUsualFiles;
    setrlimit(RLIMIT_NOFILE, &files);
    controller_ = std::make_unique<Standalone>(dir_.path(), RealController);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    ASSERT_TRUE(controller_->started()) << controller_->program().log();
    for (const char* name : {"small", "big"}) {
      ASSERT_EQ(Send(controller_->api(), "POST", kMaps, {{"metadata", {{"name", name}}}}), 201);
    }
  }

  std::string address() const { return controller_->address(); }
  int Patch(const std::string& name, const std::string& value) {
    return Send(controller_->api(), "PATCH", std::string(kMaps) + "/" + name,
                {{"data", {{"value", value}}}});
  }
  // A number of /proc/<pid>/status.
  long OfProcess(const std::string& field) {
    std::ifstream in(fmt::format("/proc/{}/status", controller_->program().pid()));
    std::string word;
    while (in >> word && word != field + ":") continue;
    long value = -1;
    in >> value;
    return value;
  }
  // Streams that the server has open, as it says itself.
  long OpenStreams() {
    const auto answer = controller_->api().Send({.target = "/metrics"});
    if (!answer.ok()) return -1;
    const std::string wanted = "\ntahoma_http_open_streams ";
    const std::size_t at = answer->body.find(wanted);
    return at == std::string::npos ? -1 : std::stol(answer->body.substr(at + wanted.size()));
  }

  TempDir dir_;
  std::unique_ptr<Standalone> controller_;
};

TEST_F(WatchersTest, AThousandWatchesAndSleepersLeaveRoomForWritesAndReaders) {
  constexpr int kReaders = 1100;  // more than the usual number of files
  constexpr int kSleepers = 20;
  constexpr int kRounds = 40;
  constexpr std::size_t kBig = 200 << 10;
  std::vector<std::unique_ptr<Watcher>> readers, sleepers;
  for (int i = 0; i < kReaders; ++i) {
    readers.push_back(std::make_unique<Watcher>(address(), "small"));
  }
  for (int i = 0; i < kSleepers; ++i) {
    sleepers.push_back(std::make_unique<Watcher>(address(), "big", 4096));
  }
  for (auto& reader : readers) ASSERT_TRUE(reader->ReadUntil("\"ADDED\""));
  ASSERT_TRUE(controller_->Eventually([&] { return OpenStreams() == kReaders + kSleepers; }));

  // More than the kernel keeps for a sleeper.
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_EQ(Patch("big", std::string(kBig, static_cast<char>('a' + round % 26))), 200);
    ASSERT_EQ(Patch("small", fmt::format("round-{}.", round)), 200);
  }
  for (int round = 0; round < kRounds; ++round) {
    for (auto& reader : readers) ASSERT_TRUE(reader->ReadUntil(fmt::format("round-{}.", round)));
  }
  EXPECT_LT(OfProcess("Threads"), kReaders + kSleepers + 150);
  if (!kSanitized) {  // a sanitizer's own memory is several times the program's
    EXPECT_LT(OfProcess("VmRSS"), 400 << 10) << "KiB";
  }

  ASSERT_TRUE(controller_->Eventually([&] { return OpenStreams() == kReaders; }))
      << OpenStreams() << " streams are open; those that nobody reads should have been cut";
  for (auto& sleeper : sleepers) {
    EXPECT_FALSE(sleeper->ReadToEnd().ends_with("0\r\n\r\n")) << "it was cut in the middle";
    EXPECT_LT(sleeper->bytes(), kRounds * kBig);
  }
  EXPECT_EQ(Patch("small", "last."), 200);
  for (auto& reader : readers) ASSERT_TRUE(reader->ReadUntil("last."));
}

TEST_F(WatchersTest, AWatcherThatFallsBehindTheHistoryIsToldToListAgain) {
  // The controller keeps about 10 MiB of ConfigMaps' texts.
  constexpr int kRounds = 40;
  constexpr std::size_t kBig = 400 << 10;
  const auto before = controller_->api().Send({.target = kMaps});
  const std::string version = ParseJson(before->body)["metadata"]["resourceVersion"];
  Watcher sleeper(address(), "big", 4096);
  ASSERT_TRUE(sleeper.ReadUntil("\"ADDED\""));
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_EQ(Patch("big", std::string(kBig, static_cast<char>('a' + round % 26))), 200);
  }
  const auto expect_gone = [](const std::string& last) {
    EXPECT_NE(last.find("\"type\":\"ERROR\""), std::string::npos) << last;
    EXPECT_NE(last.find("\"reason\":\"Expired\""), std::string::npos) << last;
    EXPECT_NE(last.find("\"code\":410"), std::string::npos) << last;
  };
  Watcher late(address(), "big&resourceVersion=" + version);
  expect_gone(late.ReadToEnd());
  // On a slow machine the sleeper was cut off before: then the last chunk is missing.
  const std::string last = sleeper.ReadToEnd();
  if (last.ends_with("0\r\n\r\n")) expect_gone(last);
  EXPECT_LT(sleeper.bytes(), kRounds * kBig);
}

}  // namespace
}  // namespace tahoma::testing
