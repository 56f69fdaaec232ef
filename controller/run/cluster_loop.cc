#include "controller/run/cluster_loop.h"

#include <utility>

#include "lib/base/status.h"

namespace tahoma::controller {

ClusterLoop::ClusterLoop(kube::ServerAccess access, Journal& journal, const Clock& clock,
                         CoreLoopOptions options)
    : access_(std::move(access)), journal_(journal), clock_(clock), options_(std::move(options)) {}

absl::Status ClusterLoop::Start() {
  TAHOMA_ASSIGN_OR_RETURN(transport_, kube::HttpTransport::Create(access_));
  auto loop = std::make_shared<CoreLoop>(*transport_, journal_, clock_, options_);
  CoreLoop& started = *loop;
  {
    const MutexLock lock(mutex_);
    loop_ = std::move(loop);
  }
  return started.Start();
}

absl::Status ClusterLoop::Tend() {
  absl::Status health;
  {
    const MutexLock lock(mutex_);
    health = loop_->health();
  }
  if (!absl::IsAborted(health)) return health;
  options_.log(fmt::format("reading everything anew: {}", Message(health)));
  Stop();
  return Start();
}

void ClusterLoop::Stop() {
  if (transport_ != nullptr) transport_->Shutdown();
  std::shared_ptr<CoreLoop> ended;
  {
    const MutexLock lock(mutex_);
    ended = std::move(loop_);
  }
  // Somebody may still be in Order, which ends now; nothing of the loop runs after this.
  if (ended != nullptr) ended->Stop();
  transport_.reset();
}

void ClusterLoop::LoseHistory(const std::string& why) {
  const MutexLock lock(mutex_);
  if (loop_ != nullptr) loop_->LoseHistory(why);
}

absl::StatusOr<std::shared_ptr<const Block>> ClusterLoop::Order(
    std::variant<PurchaseOrder, ExtensionOrder> order) {
  std::shared_ptr<CoreLoop> loop;
  {
    const MutexLock lock(mutex_);
    loop = loop_;
  }
  if (loop == nullptr) return Unavailable("the controller is not leading");
  return loop->Order(std::move(order));
}

void ClusterLoop::EndOrders() {
  const MutexLock lock(mutex_);
  if (loop_ != nullptr) loop_->EndOrders();
}

std::shared_ptr<const Snapshot> ClusterLoop::snapshot() const {
  const MutexLock lock(mutex_);
  return loop_ == nullptr ? std::make_shared<const Snapshot>() : loop_->snapshot();
}

std::string ClusterLoop::CoreTrouble() const {
  const MutexLock lock(mutex_);
  return loop_ == nullptr ? "" : loop_->CoreTrouble();
}

std::string ClusterLoop::PublisherTrouble() const {
  const MutexLock lock(mutex_);
  return loop_ == nullptr ? "" : loop_->PublisherTrouble();
}

}  // namespace tahoma::controller
