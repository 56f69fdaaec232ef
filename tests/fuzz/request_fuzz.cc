// Heads and framing of HTTP requests: however the bytes are cut, the same requests come out or the
// same refusal; what comes out keeps the bounds, and where a body ends agrees with a slow reader of
// RFC 9112.

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/ascii.h"
#include "lib/base/check.h"
#include "lib/base/utf8.h"
#include "lib/rest/request_parser.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma::rest;
using State = RequestParser::State;

constexpr RequestParser::Limits kLimits = {.head_bytes = 2048, .body_bytes = 1024};
constexpr std::size_t kRequestsMax = 8;

struct Taken {
  std::vector<Request> requests;
  std::vector<std::size_t> ends;  // where each request ends in the input
  int refusal = 0;
};

// Gives the parser `piece` bytes at a time.
Taken TakeAll(std::string_view input, std::size_t piece) {
  Taken taken;
  RequestParser parser(kLimits);
  std::size_t at = 0;
  while (at < input.size() && taken.requests.size() < kRequestsMax) {
    const std::string_view bytes = input.substr(at, piece);
    const std::size_t used = parser.Consume(bytes);
    TAHOMA_CHECK(used <= bytes.size());
    at += used;
    if (parser.state() == State::kHeadRead) parser.ReadBody();
    if (parser.state() == State::kRefused) {
      taken.refusal = parser.refusal_status();
      TAHOMA_CHECK(taken.refusal >= 400 && !parser.refusal().empty());
      return taken;
    }
    if (parser.state() == State::kWhole) {
      taken.requests.push_back(parser.request());
      taken.ends.push_back(at);
      parser.Reset();
    } else {
      TAHOMA_CHECK(used > 0 || parser.state() == State::kBody);
    }
  }
  return taken;
}

// The body of a request whose bytes are these, by its Content-Length or its chunks.
std::string BodyOracle(const Request& request, std::string_view bytes) {
  bytes.remove_prefix(bytes.find("\r\n\r\n") + 4);
  if (request.header("Transfer-Encoding").empty()) return std::string(bytes);
  std::string body;
  while (true) {
    const std::size_t size = std::strtoul(std::string(bytes.substr(0, 16)).c_str(), nullptr, 16);
    bytes.remove_prefix(bytes.find("\r\n") + 2);
    if (size == 0) return body;
    body += bytes.substr(0, size);
    bytes.remove_prefix(size + 2);
  }
}

void CheckRequest(const Request& request) {
  TAHOMA_CHECK(!request.method.empty() && !request.path.empty());
  TAHOMA_CHECK(request.body.size() <= kLimits.body_bytes);
  TAHOMA_CHECK(tahoma::IsUtf8(request.target));
  for (const auto& [name, value] : request.headers) {
    TAHOMA_CHECK(!name.empty() && tahoma::IsUtf8(value));
    TAHOMA_CHECK(value.find_first_of("\r\n") == std::string::npos);
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  const Taken whole = TakeAll(input, input.size());
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}}) {
    const Taken cut = TakeAll(input, piece);
    TAHOMA_CHECK(cut.refusal == whole.refusal && cut.ends == whole.ends);
    for (std::size_t i = 0; i < cut.requests.size(); ++i) {
      TAHOMA_CHECK(cut.requests[i].target == whole.requests[i].target);
      TAHOMA_CHECK(cut.requests[i].headers == whole.requests[i].headers);
      TAHOMA_CHECK(cut.requests[i].body == whole.requests[i].body);
    }
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i < whole.requests.size(); ++i) {
    CheckRequest(whole.requests[i]);
    const std::string_view bytes = input.substr(begin, whole.ends[i] - begin);
    TAHOMA_CHECK(whole.requests[i].body == BodyOracle(whole.requests[i], bytes));
    begin = whole.ends[i];
  }
}
