// The standalone Kubernetes API around the core: store, API server, HTTP front, first objects, and
// the controllers of a kube-controller-manager.
//
// Thread safety: Open and the destructor from one thread; all other functions from any.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>

#include "controller/apiserver/controllers/controller_threads.h"
#include "controller/apiserver/controllers/controllers.h"
#include "controller/apiserver/http/api_server.h"
#include "controller/apiserver/http/http_front.h"
#include "controller/apiserver/http/in_process_transport.h"
#include "controller/app/options.h"
#include "controller/core/journal/journal.h"
#include "controller/run/core_loop.h"
#include "controller/store/rocks_journal.h"
#include "controller/store/store.h"
#include "lib/base/clock.h"
#include "lib/rest/metrics.h"

namespace tahoma::controller {

class StandaloneApi {
 public:
  using LogLine = std::function<void(const std::string& line)>;
  using Evicted = std::function<void(const apiserver::Eviction& eviction)>;

  // Opens the folder, binds the address, then installs the missing CRDs of crdDir, DeviceClasses
  // and StorageClass. `callers` holds the callers' rights, the audit and the server's log;
  // `options` hold address, certificates and allowed hosts. Fails with a message that names the
  // folder, address or file at fault. Errors that can be found before any write are found before.
  // `log` gets a line about each mistake of our own that a request or a controller met, `evicted`
  // gets each pod that a controller evicts.
  static absl::StatusOr<std::unique_ptr<StandaloneApi>> Open(
      const Options& options, apiserver::HttpFrontOptions callers, const Clock& clock,
      rest::Metrics& metrics, const LogLine& log = {}, const Evicted& evicted = {});
  ~StandaloneApi();

  apiserver::ApiServer& server() { return *server_; }
  kube::Transport& transport() { return *transport_; }
  Journal& journal() { return *journal_; }
  Store& store() { return *store_; }
  const BlockTime& block_time() const { return block_time_; }
  apiserver::HttpFront& front() { return *front_; }
  std::string url() const { return front_->url(); }
  std::string address() const { return front_->address(); }

  // Returns the options of a core loop on this API and its journal; the caller adds the scheduler
  // names and the log. Two threads publish: one makes writes while the other waits for the disk.
  static CoreLoopOptions LoopOptions() {
    return {.core = {.journal_beside_api = true},
            .publisher = {.threads = 2, .together = 64, .allocate_by = AllocateBy::kPatch},
            .wait_for_journal = true,
            .log = {}};
  }

  // Ends watches, to let their readers stop.
  void EndStreams();

 private:
  StandaloneApi() = default;
  absl::Status InstallDeviceClasses();
  // `resource` is the name of the extended resource that the class stands for; may be empty.
  absl::Status InstallDeviceClass(const std::string& name, const std::string& expression,
                                  const std::string& resource = "");
  absl::Status InstallStorageClass();
  // Creates the object unless it exists; a changed object stays as it is.
  absl::Status Install(const apiserver::ResourceName& resource, const Json& object);

  std::string volume_folder_;
  std::unique_ptr<Store> store_;
  BlockTime block_time_;
  std::unique_ptr<RocksJournal> journal_;
  std::unique_ptr<apiserver::ApiServer> server_;
  std::unique_ptr<apiserver::InProcessTransport> transport_;
  std::unique_ptr<apiserver::InProcessTransport> controllers_transport_;
  std::unique_ptr<apiserver::HttpFront> front_;
  std::unique_ptr<apiserver::Controllers> controllers_;
  std::unique_ptr<apiserver::ControllerThreads> controller_threads_;
};

// A kubeconfig with one context, "tahoma". All fields but the URL may be empty. The token stands
// beside its file because JavaScript's client reads no tokenFile; Go's clients prefer the file,
// whose token may be replaced.
struct KubeconfigParts {
  std::string url = {};
  std::string ca_file = {};
  std::string token_file = {};
  std::string token = {};      // what token_file holds
  std::string admin_url = {};  // for kubectl tahoma, in kAdminExtension
};
std::string KubeconfigText(const KubeconfigParts& parts);

}  // namespace tahoma::controller
