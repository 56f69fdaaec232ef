// An HTTP request as handlers see it, and what they answer.
//
//   Response Show(const Request& request) {
//     const auto gang = Find(request.param("name"));
//     if (!gang.ok()) return Response::FromStatus(gang.status());
//     return Response::Json(200, gang->Text());
//   }
//
// Scope: values only; lib/rest/server.h receives and sends them.
//
// Thread safety: plain values. A stream's source is called from one thread at a time.

#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/json_fwd.h"

namespace tahoma::rest {

using Headers = std::vector<std::pair<std::string, std::string>>;

// The subject of a verified client certificate.
struct ClientSubject {
  std::string common_name;
  std::vector<std::string> organizations;
};

// The caller, as far as the server's gate knows it.
struct Identity {
  std::string name;
  std::vector<std::string> groups = {};
};

struct Request {
  std::string method;
  std::string target;  // as sent: "/v1/gangs/a%20b?wide=true"
  std::string path;    // as sent, without the query: "/v1/gangs/a%20b"
  std::string query;   // as sent, without "?"
  Headers headers;     // names as sent
  std::string body = {};
  // Instead of `body`, its value: from callers in the same process, which need make no text of it.
  std::shared_ptr<const tahoma::Json> parsed = {};
  std::string peer;  // "127.0.0.1:4711"
  bool tls = false;
  std::optional<ClientSubject> client;            // only with a certificate that a client CA signed
  std::shared_ptr<const Identity> identity = {};  // what the server's gate noted; null: nothing

  // The values of the {names} of the matched route, decoded.
  std::vector<std::pair<std::string, std::string>> params;

  // The first value of that name, compared without case; empty when there is none.
  std::string_view header(std::string_view name) const;
  // Empty when the route has no such name.
  std::string_view param(std::string_view name) const;
  // The decoded value of a query key ("wide" in "?wide=true"); nothing when it is absent.
  std::optional<std::string> query_value(std::string_view key) const;
};

// Appends a stream's next bytes to `out`, waiting at most `wait` for them; it may append nothing.
// Returns false when the stream is over (what was appended is still sent).
//
// In a response that has the header Content-Length it is no stream, and holds no thread: it has so
// many bytes at hand, appends some of them at each call, and is called whenever the socket has
// taken those before, by whichever thread sends them. It must not refer to the request.
using StreamSource = std::function<bool(std::string& out, std::chrono::milliseconds wait)>;

struct Response {
  int status = 200;
  Headers headers = {};
  std::string content_type;
  std::string body = {};
  // The value that `body` is the text of, where the server has it at hand: for callers in the same
  // process, which need not parse.
  std::shared_ptr<const tahoma::Json> parsed = {};
  std::string object_name = {};  // of the object that was made or changed, for logs
  StreamSource source;           // when set, `body` is not used
  std::function<void()> closed;  // called once, when the stream is over or its reader has gone

  static Response Text(int status, std::string text);
  static Response Json(int status, std::string json);
  // RFC 9457: {"type":"about:blank","title":…,"status":…,"detail":…} as application/problem+json.
  static Response Problem(int status, std::string_view detail);
  // The problem that belongs to an error: kNotFound is 404, kResourceExhausted 429, and so on.
  static Response FromStatus(const absl::Status& status);
  static Response Stream(std::string content_type, StreamSource source,
                         std::function<void()> closed = {});

  Response&& With(std::string name, std::string value) &&;
};

// "Not Found" for 404; "Unknown" for numbers that HTTP does not define.
std::string_view ReasonPhrase(int status);

// Decodes %XX; nothing when a % is not followed by two hex digits, or the result has a NUL.
// `plus_is_space` is for queries.
std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space = false);

}  // namespace tahoma::rest
