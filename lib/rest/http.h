// HTTP/1.1 by httplib, bent to our needs at the points it leaves open.
//
// httplib parses requests and writes responses on our Connection. What it would do by itself and
// a server on a hostile network must not (read bodies without a bound, unpack compressed ones,
// guess at a missing length, match paths with regular expressions, hold back a stream's bytes in a
// compressor) is taken out of its sight before it looks.
//
// Scope: one request at a time on one connection; which connection and which thread is decided in
// lib/rest/server.cc.
//
// Thread safety: ServeOne may be called from many threads, each with its own connection.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/rest/connection.h"
#include "lib/rest/message.h"
#include "lib/rest/metrics.h"
#include "lib/rest/server.h"

namespace tahoma::rest {

class Http {
 public:
  using Answer = std::function<Response(Request& request)>;

  // `gate` is asked before a body is read, `answer` when the request is whole.
  Http(const ServerOptions& options, Metrics& metrics, Gate gate, Answer answer);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  // The bound port, or -1 with errno set.
  int Bind(const std::string& host, int port);
  int listener() const;
  void CloseListener();
  // Streams end at their next turn.
  void EndStreams();

  // Receives one request and sends its answer. False when the connection must be closed.
  bool ServeOne(Connection& connection);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tahoma::rest
