#include "lib/rest/budget.h"

#include <utility>

#include "lib/base/check.h"

namespace tahoma::rest {

std::unique_ptr<Budget::Share> Budget::Admit(std::string client) {
  {
    const MutexLock lock(mutex_);
    ++clients_[client].connections;
    ++all_.connections;
  }
  return std::make_unique<Share>(*this, std::move(client));
}

Budget::Share::~Share() {
  const MutexLock lock(budget_.mutex_);
  const auto at = budget_.clients_.find(client_);
  TAHOMA_CHECK(at != budget_.clients_.end());
  at->second.bytes -= bytes_;
  budget_.all_.bytes -= bytes_;
  at->second.answer_bytes -= answer_bytes_;
  budget_.all_.answer_bytes -= answer_bytes_;
  --budget_.all_.connections;
  if (--at->second.connections == 0) budget_.clients_.erase(at);
}

void Budget::Share::Hold(std::size_t bytes) {
  if (bytes == bytes_) return;
  const MutexLock lock(budget_.mutex_);
  Use& use = budget_.clients_.find(client_)->second;
  use.bytes = use.bytes - bytes_ + bytes;
  budget_.all_.bytes = budget_.all_.bytes - bytes_ + bytes;
  bytes_ = bytes;
}

bool Budget::Share::HoldAnswer(std::size_t bytes) {
  if (bytes == answer_bytes_) return true;
  const MutexLock lock(budget_.mutex_);
  Use& use = budget_.clients_.find(client_)->second;
  const std::size_t of_client = use.answer_bytes - answer_bytes_;
  const std::size_t of_all = budget_.all_.answer_bytes - answer_bytes_;
  const Limits& limits = budget_.limits_;
  const bool fits = (of_client == 0 || of_client + bytes <= limits.bytes_per_client) &&
                    (of_all == 0 || of_all + bytes <= limits.bytes);
  if (bytes > answer_bytes_ && !fits) return false;
  use.answer_bytes = of_client + bytes;
  budget_.all_.answer_bytes = of_all + bytes;
  answer_bytes_ = bytes;
  return true;
}

Budget::Over Budget::Room(const std::string& client) const {
  const MutexLock lock(mutex_);
  if (all_.connections >= limits_.connections) return Over::kAll;
  const auto at = clients_.find(client);
  const int own = at == clients_.end() ? 0 : at->second.connections;
  return own >= limits_.connections_per_client ? Over::kClient : Over::kNobody;
}

Budget::Over Budget::Weight(const std::string& client) const {
  const MutexLock lock(mutex_);
  if (all_.bytes > limits_.bytes) return Over::kAll;
  const auto at = clients_.find(client);
  const std::size_t own = at == clients_.end() ? 0 : at->second.bytes;
  return own > limits_.bytes_per_client ? Over::kClient : Over::kNobody;
}

}  // namespace tahoma::rest
