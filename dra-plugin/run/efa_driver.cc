#include "dra-plugin/run/efa_driver.h"

#include <utility>
#include <vector>

#include "dra-plugin/claims/efa_claims.h"
#include "dra-plugin/claims/posix_files.h"
#include "dra-plugin/inventory/efa_pool.h"
#include "dra-plugin/kubelet/kubelet_server.h"
#include "dra-plugin/run/node_client.h"
#include "dra-plugin/slices/claim_source.h"
#include "dra-plugin/slices/slice_publisher.h"
#include "lib/base/mutex.h"
#include "lib/base/status.h"
#include "lib/driver/efa_nic.h"

namespace tahoma::dra {
namespace {

class EfaDriverOnSockets final : public EfaDriver, private DriverCalls {
 public:
  EfaDriverOnSockets(EfaDriverOptions options, kube::Transport& transport)
      : options_(std::move(options)),
        data_dir_(fmt::format("{}/{}", options_.plugin_dir, hw::kEfaDriver)),
        node_(options_.node_socket),
        source_(transport),
        publisher_(transport, options_.node_name, {.driver = std::string(hw::kEfaDriver)}),
        call_lock_(data_dir_ + "/serialize.lock") {}
  ~EfaDriverOnSockets() override { Stop(); }

  absl::Status Open(const Clock& clock) {
    // The lock and the socket are in this folder.
    TAHOMA_RETURN_IF_ERROR(PosixFiles::Open(data_dir_).status());
    TAHOMA_ASSIGN_OR_RETURN(cdi_files_, PosixFiles::Open(options_.cdi_dir));
    claims_ = std::make_unique<EfaClaims>(options_.node_name, *cdi_files_, node_, source_);
    KubeletOptions kubelet = {.driver = std::string(hw::kEfaDriver),
                              .registry_dir = options_.registry_dir,
                              .data_dir = data_dir_,
                              .pod_uid = options_.pod_uid,
                              .repeat_for = options_.repeat_for};
    kubelet.on_registration = options_.on_registration;
    TAHOMA_ASSIGN_OR_RETURN(
        server_, KubeletServer::Start(std::move(kubelet), *this, call_lock_, board_, clock));
    return absl::OkStatus();
  }

  bool Show(const wire::Inventory& inventory, const PoolOptions& options) override {
    DevicePool pool = BuildEfaPool(inventory, options);
    board_.Set(HealthOf(pool, options_.node_name));
    const MutexLock lock(mutex_);
    const bool changed = pool_ != pool;
    pool_ = std::move(pool);
    return changed;
  }
  absl::Status Publish() override {
    DevicePool pool;
    {
      const MutexLock lock(mutex_);
      pool = pool_;
    }
    return publisher_.Publish(pool);
  }
  void Stop() override {
    if (server_ != nullptr) server_->Stop();
    node_.Close();
  }

 private:
  absl::StatusOr<std::vector<PreparedDevice>> Prepare(const ClaimRef& claim) override {
    return claims_->Prepare(claim);
  }
  absl::Status Unprepare(const ClaimRef& claim) override { return claims_->Unprepare(claim); }

  const EfaDriverOptions options_;
  const std::string data_dir_;
  NodeClient node_;
  ApiClaimSource source_;
  SlicePublisher publisher_;
  CallLock call_lock_;
  HealthBoard board_;
  Mutex mutex_;
  DevicePool pool_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PosixFiles> cdi_files_;
  std::unique_ptr<EfaClaims> claims_;
  std::unique_ptr<KubeletServer> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<EfaDriver>> EfaDriver::Start(EfaDriverOptions options,
                                                            kube::Transport& transport,
                                                            const Clock& clock) {
  auto driver = std::make_unique<EfaDriverOnSockets>(std::move(options), transport);
  TAHOMA_RETURN_IF_ERROR(driver->Open(clock));
  return driver;
}

}  // namespace tahoma::dra
