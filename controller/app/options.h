// The options of the controller (docs/formats/config.md).
//
// Thread safety: values.

#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "controller/access/callers.h"
#include "controller/app/block_options.h"
#include "lib/config/log.h"
#include "lib/config/spec.h"

namespace tahoma::controller {

struct Options {
  bool standalone = false;
  std::string data_dir = "tahoma-data";
  std::string listen_address = "127.0.0.1:8001";
  std::string admin_address = "127.0.0.1:8002";
  std::string kubeconfig;
  std::string pod_name;  // not standalone; empty: no label
  std::string crd_dir = "charts/tahoma/crds";
  std::string write_kubeconfig;
  std::string port_file;
  std::string token_file;
  std::string node_token_file;  // standalone; empty: none
  std::string identity_file;
  std::string access_key_file;      // of EC2's API; empty: signatures are not verified
  bool admin_asks_cluster = false;  // not standalone
  std::string audit_file;
  bool audit_required = false;
  std::string tls_cert_file;
  std::string tls_key_file;
  std::string client_ca_file;
  std::vector<std::string> allowed_hosts;
  std::size_t watch_history_bytes = 64UL << 20U;  // standalone; for each resource
  BlockOptions blocks;
  std::int64_t time_scale = 1;               // of Capacity Blocks; standalone
  std::vector<std::string> scheduler_names;  // empty: SchedulerNames() chooses
  config::LogOptions log;
};

config::Spec DeclareOptions(Options& options);

// Returns the schedulers (spec.schedulerName) whose pods the controller places. The default is
// "tahoma" and, with --standalone, where there is no other scheduler, "default-scheduler".
std::vector<std::string> SchedulerNames(const Options& options);

Callers::Files CallerFilesOf(const Options& options);

// Checks combinations of options; single values are checked where they are declared.
absl::Status CheckOptions(const Options& options);

}  // namespace tahoma::controller
