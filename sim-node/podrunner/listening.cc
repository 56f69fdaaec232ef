#include "sim-node/podrunner/listening.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace tahoma::sim {
namespace {

constexpr std::string_view kListening = "0A";
constexpr std::size_t kWordDigits = 8;

// The address words of the kernel are in the machine's byte order.
template <std::size_t kWords>
bool ReadWords(std::string_view text, std::array<std::uint32_t, kWords>& words) {
  if (text.size() != kWords * kWordDigits) return false;
  for (std::size_t i = 0; i < kWords; ++i) {
    const char* from = text.data() + i * kWordDigits;
    if (std::from_chars(from, from + kWordDigits, words.at(i), 16).ec != std::errc()) return false;
  }
  return true;
}

bool ReadAddress(std::string_view text, bool v6, Listener& listener) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view port = text.substr(colon + 1);
  if (std::from_chars(port.data(), port.data() + port.size(), listener.port, 16).ec !=
      std::errc()) {
    return false;
  }
  if (!v6) {
    std::array<std::uint32_t, 1> words{};
    if (!ReadWords(text.substr(0, colon), words)) return false;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(listener.port);
    address.sin_addr.s_addr = words[0] == 0 ? htonl(INADDR_LOOPBACK) : words[0];
    std::memcpy(&listener.address, &address, sizeof address);
    return true;
  }
  std::array<std::uint32_t, 4> words{};
  if (!ReadWords(text.substr(0, colon), words)) return false;
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(listener.port);
  std::memcpy(&address.sin6_addr, words.data(), sizeof address.sin6_addr);
  if (IN6_IS_ADDR_UNSPECIFIED(&address.sin6_addr)) address.sin6_addr = in6addr_loopback;
  std::memcpy(&listener.address, &address, sizeof address);
  return true;
}

}  // namespace

std::vector<Listener> Listeners(std::string_view table, bool v6) {
  std::vector<Listener> listeners;
  std::istringstream lines{std::string(table)};
  std::string line;
  while (std::getline(lines, line)) {
    // "0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 …"
    std::istringstream fields(line);
    std::string number;
    std::string local;
    std::string remote;
    std::string state;
    std::string ignored;
    Listener listener;
    if (!(fields >> number >> local >> remote >> state) || state != kListening) continue;
    if (!(fields >> ignored >> ignored >> ignored >> listener.user)) continue;
    if (ReadAddress(local, v6, listener)) listeners.push_back(listener);
  }
  return listeners;
}

std::optional<Listener> ListenerOf(uid_t user, std::uint16_t port) {
  for (const bool v6 : {false, true}) {
    std::ifstream in(v6 ? "/proc/net/tcp6" : "/proc/net/tcp", std::ios::binary);
    const std::string table((std::istreambuf_iterator<char>(in)), {});
    const std::vector<Listener> listeners = Listeners(table, v6);
    const auto found = std::ranges::find_if(
        listeners, [&](const Listener& one) { return one.port == port && one.user == user; });
    if (found != listeners.end()) return *found;
  }
  return std::nullopt;
}

}  // namespace tahoma::sim
