// EC2's Query protocol at a REST server: `POST /` with a form, and `GET /?Action=…`.
//
// docs/formats/ec2-api.md describes actions, parameters, errors and who may call. Without access
// keys whoever passes the other gate may do everything, signed or not.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "controller/access/access_keys.h"
#include "controller/access/audit.h"
#include "controller/ec2/service.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/base/rng.h"
#include "lib/rest/message.h"
#include "lib/rest/server.h"

namespace tahoma::controller::ec2 {

struct Ec2Options {
  // Empty: signatures are read and not verified.
  CurrentAccessKeys keys = {};
  // The owner of what is bought without access keys.
  std::string name_space = "default";
  std::string account = "000000000000";
  // Gets a line about each purchase that was tried.
  AuditSink audit = {};
  // Gets a line about each failure of the server, whose reason the client is not told. Called from
  // many threads.
  std::function<void(const std::string& line)> log = {};
};

class Ec2Api {
 public:
  // `service` and `clock` must outlive it. `seed` is of the ids of requests and audit lines.
  Ec2Api(Ec2Service& service, Ec2Options options, const Clock& clock, std::uint64_t seed);

  // Before the server starts; `this` must outlive the server.
  void AddRoutes(rest::Server& server);

  // A server's gate. With access keys, requests of this API are refused here when that is possible
  // before the body is read: no access key, one that is not known, a signature that is malformed or
  // old. All other requests are admitted by `other`, whose refusals of requests of this API become
  // errors of EC2's. `this` must outlive the server.
  rest::Gate GateBefore(rest::Gate other);
  rest::Response Answer(const rest::Request& request);

 private:
  struct Identified;

  struct Outcome;

  std::string NextRequestId();
  rest::Response WithDate(rest::Response answer) const;
  // Who calls, as far as the head of the request tells.
  absl::StatusOr<Identified> Identify(const rest::Request& head) const;
  Outcome Run(const rest::Request& request, std::string_view request_id);
  absl::StatusOr<std::string> RunAction(const rest::Request& request, std::string_view request_id,
                                        Outcome& outcome);
  void Record(const rest::Request& request, const Outcome& outcome, rest::Response& answer,
              WallTime received);

  Ec2Service& service_;
  const Ec2Options options_;
  const Clock& clock_;
  Auditor auditor_;
  Mutex mutex_;
  Rng rng_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::controller::ec2
