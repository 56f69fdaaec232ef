#include "tests/integration/hostile_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "tests/fuzz/conversation.h"
#include "tests/unit/lib/rest/raw_client.h"

namespace tahoma::testing {
namespace {

constexpr const char* kDictionary = "tests/fuzz/dictionaries/api.dict";

constexpr std::array<const char*, 9> kTypes = {"application/json",
                                               "application/yaml",
                                               "application/merge-patch+json",
                                               "application/json-patch+json",
                                               "application/strategic-merge-patch+json",
                                               "application/apply-patch+yaml",
                                               "application/vnd.kubernetes.protobuf",
                                               "text/plain",
                                               "\xff/\x01"};

constexpr std::array<const char*, 10> kOddHeaders = {"Transfer-Encoding: chunked",
                                                     "Content-Length: 3",
                                                     "Content-Length: 99999999999999999999",
                                                     "Expect: 100-continue",
                                                     "Connection: Upgrade\r\nUpgrade: websocket",
                                                     "Content-Encoding: gzip",
                                                     "Host: evil.example.org",
                                                     "Origin: http://evil.example.org",
                                                     "User-Agent: a\xc3",
                                                     "Accept: application/json;as=Table;v=v1;g="
                                                     "meta.k8s.io"};

constexpr const char* kOwnNamespacePath = "/api/v1/namespaces/hostile";

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// The conversation as said about objects of its own.
std::string InOwnNamespace(std::string text) {
  ReplaceAll(text, "namespaces/default", std::string("namespaces/") + kHostileNamespace);
  return text;
}

}  // namespace

HostileClient::HostileClient(Options options)
    : options_(std::move(options)),
      rng_(options_.seed),
      mutator_(fuzz::ReadCorpus("api"), fuzz::ReadDictionary(kDictionary)) {
  for (const std::string& text : mutator_.texts()) {
    auto requests = fuzz::ReadConversation(InOwnNamespace(text));
    // Without the namespace the rest would only be refused.
    std::erase_if(requests, [](const rest::Request& request) {
      return request.method == "DELETE" && request.path == kOwnNamespacePath;
    });
    if (!requests.empty()) conversations_.push_back(std::move(requests));
  }
}

void HostileClient::Act() {
  ++acts_;
  const std::uint64_t chance = rng_.Below(100);
  if (chance < 45) return Converse();
  if (chance < 65) return BreakBytes();
  if (chance < 77) return Cut();
  if (chance < 83) return HalfBody();
  if (chance < 90) return DropWatch();
  return PatchTheirs();
}

const std::vector<rest::Request>& HostileClient::AnyConversation() {
  return conversations_[rng_.Below(conversations_.size())];
}

std::string HostileClient::Written(const rest::Request& request) {
  std::string head = fmt::format("{} {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", request.method,
                                 request.target, options_.port);
  for (const auto& [name, value] : request.headers) {
    const bool other = name == "Content-Type" && rng_.Chance(1, 10);
    head += fmt::format("{}: {}\r\n", name, other ? kTypes[rng_.Below(kTypes.size())] : value);
  }
  if (rng_.Chance(1, 20)) head += std::string(kOddHeaders[rng_.Below(kOddHeaders.size())]) + "\r\n";
  if (!request.body.empty()) head += fmt::format("Content-Length: {}\r\n", request.body.size());
  return head + "\r\n" + request.body;
}

void HostileClient::Converse() {
  std::string bytes;
  for (rest::Request request : AnyConversation()) {
    if (rng_.Chance(3, 4)) {
      for (std::uint64_t i = 1 + rng_.Below(3); i > 0; --i) fuzz::MutateJson(rng_, request.body);
    }
    if (request.target.find("watch") == std::string::npos) bytes += Written(request);
  }
  Exchange(bytes);
}

void HostileClient::BreakBytes() {
  const auto& conversation = AnyConversation();
  rest::Request request = conversation[rng_.Below(conversation.size())];
  // A broken path must not name what is somebody else's.
  if (request.method == "DELETE") request.method = "GET";
  std::string bytes = Written(request);
  mutator_.Mutate(rng_, bytes);
  if (bytes.find("watch") == std::string::npos && !bytes.starts_with("DELETE")) {
    Exchange(bytes);
  }
}

void HostileClient::Cut() {
  const auto& conversation = AnyConversation();
  const std::string bytes = Written(conversation[rng_.Below(conversation.size())]);
  const RawClient client(options_.port);
  client.Send(std::string_view(bytes).substr(0, rng_.Below(bytes.size())));
}

void HostileClient::HalfBody() {
  const RawClient client(options_.port);
  client.Send(
      fmt::format("POST /api/v1/namespaces/{}/configmaps HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n"
                  "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                  kHostileNamespace, options_.port, 1 + rng_.Below(1 << 21)));
  client.Send(std::string(rng_.Below(1 << 14), '['));
  if (rng_.Chance(1, 2)) client.EndSending();
}

void HostileClient::DropWatch() {
  constexpr std::array<const char*, 4> kWatched = {"pods", "configmaps", "events", "nodes"};
  RawClient client(options_.port);
  client.Send(
      fmt::format("GET /api/v1/{}?watch=1&resourceVersion={} HTTP/1.1\r\n"
                  "Host: 127.0.0.1:{}\r\n\r\n",
                  kWatched[rng_.Below(kWatched.size())], rng_.Below(3), options_.port));
  if (rng_.Chance(1, 2)) client.ReadUntil("\r\n\r\n");
}

void HostileClient::PatchTheirs() {
  if (options_.theirs.empty()) return;
  constexpr std::array<const char*, 8> kPatches = {
      R"({"metadata":{"annotations":{"hostile":"x"}}})",
      R"({"metadata":{"labels":{"hostile":"x"}}})",
      R"({"metadata":{"finalizers":"x"}})",
      R"({"metadata":{"labels":[]}})",
      R"({"metadata":{"annotations":{"hostile":1}}})",
      R"({"metadata":{"ownerReferences":{}}})",
      R"({"metadata":{"managedFields":[{"fieldsV1":3}]}})",
      R"({"metadata":{"annotations":{"hostile":null}}})"};
  rest::Request request =
      fuzz::RequestOf("PATCH", options_.theirs[rng_.Below(options_.theirs.size())]);
  request.headers = {{"Content-Type", "application/merge-patch+json"}};
  request.body = kPatches[rng_.Below(kPatches.size())];
  Exchange(Written(request));
}

std::string HostileClient::Exchange(const std::string& bytes) {
  RawClient client(options_.port);
  client.Send(bytes);
  client.EndSending();
  std::string answers = client.ReadAll();
  Judge(bytes, answers);
  return answers;
}

void HostileClient::AskPlainly() {
  const std::string answer =
      Exchange(fmt::format("GET /version HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", options_.port));
  if (!answer.starts_with("HTTP/1.1 200 ")) Complain("the version is not told", answer);
}

void HostileClient::Complain(const std::string& about, std::string_view answer) {
  constexpr std::size_t kComplaintsMax = 5;
  constexpr std::size_t kShown = 2000;
  if (complaints_.size() >= kComplaintsMax) return;
  complaints_.push_back(fmt::format("act {} of seed {}: {}\n-> {}", acts_, options_.seed,
                                    about.substr(0, kShown), answer.substr(0, kShown)));
}

void HostileClient::Judge(const std::string& sent, std::string_view answers) {
  constexpr std::string_view kStart = "HTTP/1.1 ";
  for (std::size_t at = answers.find(kStart); at != std::string_view::npos;
       at = answers.find(kStart, at + 1)) {
    const int status = std::atoi(std::string(answers.substr(at + kStart.size(), 3)).c_str());
    ++statuses_[status];
    // 504 is Kubernetes' answer to a version of the future.
    const bool allowed = status < 500 || status == 501 || status == 504 || status == 505;
    if (!allowed) Complain(sent, answers.substr(at));
  }
}

}  // namespace tahoma::testing
