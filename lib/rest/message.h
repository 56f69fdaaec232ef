// An HTTP request as handlers see it, and a handler's answer.
//
//   Response Show(const Request& request) {
//     const auto gang = Find(request.param("name"));
//     if (!gang.ok()) return Response::FromStatus(gang.status());
//     return Response::Json(200, gang->Text());
//   }
//
// Scope: values only; lib/rest/server.h receives and sends messages.
//
// Thread safety: a stream's source is called from one thread at a time.

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

// The caller, as far as the server's gate knows the caller.
struct Identity {
  std::string name;
  std::vector<std::string> groups = {};
  std::string uid = {};
  // Facts about the caller by name, such as the pod that a token was made for.
  std::vector<std::pair<std::string, std::vector<std::string>>> extra = {};
  // Whoever showed the credentials, where that caller acts as this user; else null.
  std::shared_ptr<const Identity> behind = {};
};

struct Request {
  std::string method;
  std::string target;  // as sent: "/v1/gangs/a%20b?wide=true"
  std::string path;    // as sent, without the query: "/v1/gangs/a%20b"
  std::string query;   // as sent, without "?"
  Headers headers;     // names as sent
  std::string body = {};
  // The value of the body, in place of `body`: callers in the same process need no text.
  std::shared_ptr<const tahoma::Json> parsed = {};
  std::string peer;  // "127.0.0.1:4711"
  bool tls = false;
  std::optional<ClientSubject> client;            // only with a certificate signed by a client CA
  std::shared_ptr<const Identity> identity = {};  // as noted by the server's gate; null: nothing

  // The values of the {names} of the matched route, decoded.
  std::vector<std::pair<std::string, std::string>> params;

  // Returns the first value of the name, compared without case; empty when absent.
  std::string_view header(std::string_view name) const;
  // Empty when the route has no such name.
  std::string_view param(std::string_view name) const;
  // Returns the decoded value of a query key ("wide" in "?wide=true"); nothing when absent.
  std::optional<std::string> query_value(std::string_view key) const;
};

// Appends a stream's next bytes to `out`, waiting at most `wait`; may append nothing. Returns false
// at the end of the stream (the appended bytes are still sent).
//
// In a response with the header Content-Length the source is no stream and holds no thread. Such a
// source has all its bytes at hand and appends some at each call. Any thread may call the source,
// whenever the socket has taken the earlier bytes; the source must not refer to the request.
using StreamSource = std::function<bool(std::string& out, std::chrono::milliseconds wait)>;

class Upgraded;  // lib/rest/upgrade.h

// Moves bytes of a connection that has left HTTP, waiting at most `wait` for something to do.
// Called again and again, from one thread; false ends the connection.
using UpgradeStep = std::function<bool(Upgraded& connection, std::chrono::milliseconds wait)>;

struct Response {
  int status = 200;
  Headers headers = {};
  std::string content_type;
  std::string body = {};
  // The value with the text `body`, if the server has the value: callers in the same process need
  // not parse.
  std::shared_ptr<const tahoma::Json> parsed = {};
  std::string object_name = {};  // the made or changed object, for logs
  StreamSource source;           // when set, `body` is not used
  UpgradeStep upgrade;           // when set, the status is 101, and another protocol follows
  std::function<void()> closed;  // called once, at the stream's end or when its reader has gone

  static Response Text(int status, std::string text);
  static Response Json(int status, std::string json);
  // RFC 9457: {"type":"about:blank","title":…,"status":…,"detail":…} as application/problem+json.
  static Response Problem(int status, std::string_view detail);
  // Returns the problem for an error: kNotFound is 404, kResourceExhausted 429, and so on.
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
