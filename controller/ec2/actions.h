// The served actions of EC2, and one of STS: each reads its parameters, asks the service, and
// answers.
//
// Scope: from parameters to XML through an Ec2Service; no HTTP.
//
// Thread safety: as the service's.

#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "controller/ec2/answers.h"
#include "controller/ec2/parameters.h"
#include "controller/ec2/service.h"
#include "lib/base/digest.h"

namespace tahoma::controller::ec2 {

struct Call {
  Reader& reader;
  const Caller& caller;
  Ec2Service& service;
  AnswerHead head;
  // Digest of the request without its page, for tokens.
  Sha256Digest binding = {};
  // The action does everything except the change.
  bool dry_run = false;
  // The address by which the client has reached the server: "127.0.0.1:8002".
  std::string_view host = {};
  // The client's id for all attempts of a call; the client token where the client gives no id.
  std::string_view attempts_id = {};
  std::string_view signature = {};  // verified; empty: the request has none
};

struct Action {
  std::string_view name;
  // The resource that the action creates or changes, for the audit; empty: the action only reads.
  std::string_view buys = {};
  absl::StatusOr<std::string> (*run)(const Call& call);
  std::string_view verb = "create";  // of the audit
  bool of_sts = false;               // of AWS's Security Token Service, not of EC2
};

// OK when the parameters are good and the caller may call the action.
absl::Status MayGoOn(const Call& call);

// Null when no action has the name.
const Action* FindAction(std::string_view name);
// EC2's alone.
std::vector<std::string_view> ActionNames();

}  // namespace tahoma::controller::ec2
