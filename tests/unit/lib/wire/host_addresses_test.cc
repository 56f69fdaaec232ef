// A host name with several addresses. The resolver below replaces the C library's, so the test does
// not depend on the machine's names.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "lib/wire/socket.h"

namespace {

// An address of the answer, and the storage behind its pointers.
struct Answer {
  addrinfo info = {};
  sockaddr_storage storage = {};
};

Answer* SixthVersion(std::uint16_t port) {
  auto* answer = new Answer;
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = in6addr_loopback;
  std::memcpy(&answer->storage, &address, sizeof address);
  answer->info.ai_family = AF_INET6;
  answer->info.ai_addrlen = sizeof address;
  return answer;
}

Answer* FourthVersion(std::uint16_t port) {
  auto* answer = new Answer;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::memcpy(&answer->storage, &address, sizeof address);
  answer->info.ai_family = AF_INET;
  answer->info.ai_addrlen = sizeof address;
  return answer;
}

}  // namespace

extern "C" {

// "two.test" has ::1 and then 127.0.0.1; every other name has 127.0.0.1.
int getaddrinfo(const char* host, const char* service, const addrinfo* /*hints*/,
                addrinfo** result) {
  const std::string_view text(service);
  std::uint16_t port = 0;
  std::from_chars(text.data(), text.data() + text.size(), port);
  Answer* last = FourthVersion(port);
  *result = &last->info;
  last->info.ai_addr = reinterpret_cast<sockaddr*>(&last->storage);
  if (std::string_view(host) == "two.test") {
    Answer* first = SixthVersion(port);
    first->info.ai_addr = reinterpret_cast<sockaddr*>(&first->storage);
    first->info.ai_next = &last->info;
    *result = &first->info;
  }
  return 0;
}

void freeaddrinfo(addrinfo* result) {
  while (result != nullptr) {
    addrinfo* next = result->ai_next;
    delete reinterpret_cast<Answer*>(result);
    result = next;
  }
}

}  // extern "C"

namespace tahoma::wire {
namespace {

TEST(HostAddressesTest, APeerThatListensOnTheSecondAddressOnlyIsReached) {
  const auto listener = Listener::Open("127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  const std::string address = fmt::format("two.test:{}", (*listener)->address().port);
  const auto connection = Connection::Dial(address, std::chrono::seconds(10));
  EXPECT_TRUE(connection.ok()) << connection.status();
}

TEST(HostAddressesTest, WhenNoAddressAnswersTheErrorNamesTheHost) {
  std::string address;
  {
    const auto listener = Listener::Open("127.0.0.1:0");
    ASSERT_TRUE(listener.ok()) << listener.status();
    address = fmt::format("two.test:{}", (*listener)->address().port);
  }
  const auto connection = Connection::Dial(address, std::chrono::seconds(10));
  ASSERT_FALSE(connection.ok());
  EXPECT_EQ(connection.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(connection.status().message().find("two.test"), std::string::npos);
}

}  // namespace
}  // namespace tahoma::wire
