// Makes the Gangs that pods wish by their annotations (facts/gang_wish.h).
//
//   GangMaker maker(writes);
//   maker.Want({"default", "train"}, wish);      // its pods exist and the Gang does not
//   maker.Flush(now);
//   maker.OnResult(result, now);
//
// A Gang that exists already when the write arrives is as good as made: the watch tells about the
// Gang, and the gang's membership compares the Gang with the wish. A refused write is sent again
// after the pause of RetryPolicy.
//
// Thread safety: belongs to one thread.

#pragma once

#include <absl/container/flat_hash_map.h>

#include <memory>
#include <optional>
#include <string>

#include "controller/core/facts/gang_wish.h"
#include "controller/core/writes/api_write.h"
#include "controller/core/writes/outbox.h"
#include "controller/core/writes/write_buffer.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

class GangMaker {
 public:
  // `writes` must outlive the maker.
  explicit GangMaker(WriteBuffer& writes) : writes_(writes) {}

  void Want(const GangKey& key, std::shared_ptr<const GangWish> wish);
  // The Gang exists, or nobody wishes the Gang any more.
  void Forget(const GangKey& key);
  // Returns why the API server has refused the Gang; "" when it has not.
  std::string RefusalOf(const GangKey& key) const;

  // Returns whether the answer changed what is known of a refusal.
  bool OnResult(const ApiResult& result, const Now& now);
  void Flush(const Now& now);
  // The time at which Flush has something to do without any news.
  std::optional<MonotonicTime> wake(const Now& now) const { return outbox_.wake(now.monotonic); }

 private:
  struct Wanted {
    std::shared_ptr<const GangWish> wish;
    std::string refusal;
  };

  WriteBuffer& writes_;
  absl::flat_hash_map<GangKey, Wanted> wanted_;
  Outbox<GangKey> outbox_;
};

}  // namespace tahoma::controller
