#include "lib/rest/http.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/clock.h"

namespace tahoma::rest {
namespace {

enum class Framing { kLength, kGivenLength, kChunks, kUntilClosed };

// A value may hold a client's bytes; no byte may end the header line.
void AppendField(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ");
  for (const char c : value) head += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  head += "\r\n";
}

std::string HeadOf(const Response& answer, Framing framing, bool keep, bool old_client) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", answer.status, ReasonPhrase(answer.status));
  for (const auto& [name, value] : answer.headers) AppendField(head, name, value);
  if (!answer.content_type.empty()) AppendField(head, "Content-Type", answer.content_type);
  if (!keep) {
    head += "Connection: close\r\n";
  } else if (old_client) {
    head += "Connection: keep-alive\r\n";
  }
  // RFC 9110, 8.6: no length where there is no content by definition.
  if (framing == Framing::kChunks) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (framing == Framing::kLength && answer.status != 204 && answer.status != 304) {
    fmt::format_to(std::back_inserter(head), "Content-Length: {}\r\n", answer.body.size());
  }
  head += "\r\n";
  return head;
}

// Returns the length given by the handler; nothing without such a header.
std::optional<std::size_t> GivenLength(const Response& answer) {
  for (const auto& [name, value] : answer.headers) {
    std::size_t length = 0;
    if (name != "Content-Length") continue;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    TAHOMA_CHECK(error == std::errc() && end == value.data() + value.size());
    return length;
  }
  return std::nullopt;
}

bool Reads(std::string_view method) { return method == "GET" || method == "HEAD"; }

}  // namespace

Http::Http(const ServerOptions& options, Metrics& metrics, Gate gate, Answer answer)
    : options_(options),
      metrics_(metrics),
      gate_(std::move(gate)),
      answer_(std::move(answer)),
      streams_(metrics.AddGauge("tahoma_http_open_streams", "Streams that are open now.")),
      seconds_(metrics.AddHistogram("tahoma_http_request_duration_seconds",
                                    "From the last byte of a request to its answer.",
                                    kLatencySeconds)) {}

void Http::Serve(Connection& connection) {
  using State = RequestParser::State;
  RequestParser& parser = connection.parser();
  if (parser.state() == State::kRefused) {
    Refuse(connection, parser.refusal_status(), parser.refusal());
    return;
  }
  Request& request = parser.request();
  if (parser.state() == State::kHeadRead) {
    request.peer = connection.peer();
    request.tls = connection.is_tls();
    request.client = connection.client();
    if (auto refusal = Guarded(request, [&] { return gate_(request); })) {
      // An unread body precedes the next request.
      Finish(connection, *std::move(refusal), parser.keeps_alive() && !parser.has_body());
      return;
    }
    parser.ReadBody();
    if (parser.state() != State::kWhole) {
      if (parser.expects_continue()) connection.Continue();
      return;
    }
  }
  TAHOMA_CHECK(parser.state() == State::kWhole);
  const SystemClock clock;
  const MonotonicTime start = clock.MonotonicNow();
  auto answer = Guarded(request, [&] { return std::optional(answer_(request)); });
  const std::chrono::duration<double> took = clock.MonotonicNow() - start;
  seconds_.Observe(took.count());
  Finish(connection, *std::move(answer), parser.keeps_alive());
}

std::optional<Response> Http::Guarded(const Request& request,
                                      const std::function<std::optional<Response>()>& call) const {
  try {
    return call();
  } catch (const std::exception& thrown) {
    Log(request, thrown.what());
  } catch (...) {
    Log(request, "an exception of unknown type");
  }
  return options_.problem(500, "the request failed inside the server");
}

Response Http::ProblemOf(int status, std::string_view detail) const {
  Response answer = options_.problem(status, detail);
  if (status == 429 || status == 503) answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

void Http::Refuse(Connection& connection, int status, std::string_view detail) {
  Finish(connection, ProblemOf(status, detail), false);
}

std::string Http::Refusal(int status, std::string_view detail) const {
  const Response answer = ProblemOf(status, detail);
  return HeadOf(answer, Framing::kLength, false, false) + answer.body;
}

void Http::Finish(Connection& connection, Response answer, bool keep) {
  const RequestParser& parser = connection.parser();
  const bool head_only = parser.request().method == "HEAD";
  if (const auto length = answer.source ? GivenLength(answer) : std::nullopt) {
    Count(answer.status);
    const std::string head = HeadOf(answer, Framing::kGivenLength, keep, parser.is_http_1_0());
    connection.Answer(head, std::move(answer.source), std::move(answer.closed),
                      head_only ? 0 : *length, keep);
    return;
  }
  if (answer.source || answer.upgrade) {
    const int limit = options_.max_threads - options_.reserved_threads;
    if (open_streams_.fetch_add(1) < limit) {
      Count(answer.status);
      if (answer.upgrade) {
        Upgrade(connection, std::move(answer));
      } else {
        Stream(connection, std::move(answer), keep);
      }
      open_streams_.fetch_sub(1);
      return;
    }
    open_streams_.fetch_sub(1);
    if (answer.closed) answer.closed();
    answer = ProblemOf(429, fmt::format("{} streams are open; no more are served", limit));
  }
  const bool large = answer.body.size() > kLargeAnswerBytes && !head_only;
  if (large && !connection.share().HoldAnswer(answer.body.size())) {
    // A caller that changed something must not be told to try again: without an answer the caller
    // looks.
    if (!Reads(parser.request().method)) return connection.Break();
    answer = ProblemOf(429, "too much waits for clients that do not read it; try again");
  }
  Count(answer.status);
  std::string head = HeadOf(answer, Framing::kLength, keep, parser.is_http_1_0());
  if (head_only) answer.body.clear();
  connection.Answer(std::move(head), std::move(answer.body), keep);
}

void Http::Stream(Connection& connection, Response answer, bool keep) {
  streams_.Increment();
  RequestParser& parser = connection.parser();
  const bool head_only = parser.request().method == "HEAD";
  const bool chunked = !parser.is_http_1_0();
  keep = keep && chunked;
  const Framing framing = chunked ? Framing::kChunks : Framing::kUntilClosed;
  bool whole = connection.Send(HeadOf(answer, framing, keep, false));
  if (whole && !head_only) whole = Feed(connection, answer.source, chunked);
  try {
    if (answer.closed) answer.closed();
    answer = Response();  // the source may hold objects of the caller
  } catch (const std::exception& thrown) {
    Log(parser.request(), thrown.what());
  }
  if (whole) {
    connection.Answer(chunked && !head_only ? "0\r\n\r\n" : "", "", keep);
  } else {
    connection.Break();
  }
  streams_.Decrement();
}

void Http::Upgrade(Connection& connection, Response answer) {
  streams_.Increment();
  try {
    if (connection.Send(HeadOf(answer, Framing::kUntilClosed, true, false))) {
      while (!ending_ && answer.upgrade(connection, options_.stream_wait)) {
      }
    }
    if (answer.closed) answer.closed();
    answer = Response();  // the step may hold objects of the caller
  } catch (const std::exception& thrown) {
    Log(connection.parser().request(), thrown.what());
  }
  connection.Break();
  streams_.Decrement();
}

bool Http::Feed(Connection& connection, const StreamSource& source, bool chunked) {
  std::string bytes;
  while (!ending_) {
    bytes.clear();
    bool goes_on = false;
    try {
      goes_on = source(bytes, options_.stream_wait);
    } catch (const std::exception& thrown) {
      // Without the last chunk: the reader must not take the rest for all there was.
      Log(connection.parser().request(), thrown.what());
      return false;
    }
    if (!bytes.empty()) {
      if (chunked) {  // in place: there may be thousands of slow readers
        bytes.insert(0, fmt::format("{:x}\r\n", bytes.size()));
        bytes += "\r\n";
      }
      if (!connection.Send(bytes)) return false;
    } else if (goes_on && connection.PeerHasGone()) {
      return false;
    }
    if (!goes_on) return true;
  }
  return true;
}

void Http::Log(const Request& request, std::string_view what) const {
  if (!options_.log) return;
  options_.log(fmt::format("{} {} from {} failed inside the server: {}", request.method,
                           request.path, request.peer, what));
}

void Http::Count(int status) {
  const auto find = [&]() -> Counter& {
    return metrics_.AddCounter("tahoma_http_requests_total", "Requests answered, by status.",
                               {{"code", std::to_string(status)}});
  };
  const int index = status - kFirstStatus;
  if (index < 0 || index >= static_cast<int>(answered_.size())) return find().Increment();
  // The search by name and label takes locks and copies texts: each status is searched for once.
  std::atomic<Counter*>& known = answered_[static_cast<std::size_t>(index)];
  Counter* counter = known.load();
  if (counter == nullptr) known.store(counter = &find());
  counter->Increment();
}

}  // namespace tahoma::rest
