// Asks the cluster's API server whose token this is, and what the user may do.
//
//   ClusterAccess cluster(transport, clock);
//   const ClusterAccess::Verdict verdict =
//       cluster.Ask(token, "10.0.0.7", PathAttributes("GET", "/metrics"));
//   if (verdict.answer != ClusterAccess::Answer::kAllowed) return PermissionDenied("/metrics");
//
// Ask posts a TokenReview, then a SubjectAccessReview of the path with the user, uid, groups and
// extra from the first review, as Kubernetes' own components do (k8s.io/apiserver
// pkg/authentication/authenticatorfactory and pkg/authorization/authorizerfactory). Answers are
// kept for a while: a revoked token or a withdrawn right may count for kGrantedFor each, and a new
// right counts after kRefusedFor. Tokens are kept as hashes only. Without an answer nobody is let
// in, and the failure is not kept.
//
// Users whose token was accepted before share one set of turns; callers with an unknown token share
// another. Within each set one user, or one address, has at most half of the turns (ReviewTurns).
// Strangers with made up tokens can therefore block neither known users nor a new caller.
//
// Thread safety: any thread. Ask waits for its turn and for the API server; at most kBusyMost
// callers wait at once.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controller/access/attributes.h"
#include "controller/access/review_turns.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/json_fwd.h"
#include "lib/base/mutex.h"
#include "lib/kube/transport.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

class ClusterAccess {
 public:
  static constexpr std::chrono::seconds kGrantedFor{60};
  static constexpr std::chrono::seconds kRefusedFor{10};
  static constexpr std::size_t kEntriesMost = 1024;  // tokens; and as many permissions
  // Reviews at once for known users, and as many for strangers.
  static constexpr int kAskingMost = 8;
  static constexpr int kAskingMostOfOne = 4;
  static constexpr int kWaitingMost = 20;  // known users who wait, and as many strangers
  static constexpr int kWaitingMostOfOne = 10;
  // The threads that wait here: fewer than the admin API has (64).
  static constexpr int kBusyMost = 2 * (kAskingMost + kWaitingMost);
  // A caller's own patience with one answer.
  static constexpr std::chrono::seconds kTurnWithin{5};

  enum class Answer : std::uint8_t { kAllowed, kForbidden, kUnknownToken, kNoAnswer };
  struct Verdict {
    Answer answer = Answer::kNoAnswer;
    std::shared_ptr<const rest::Identity> identity = {};  // null: the token is unknown
    std::string reason = {};                              // of kNoAnswer: for the caller
  };

  // Both must outlive the ClusterAccess.
  ClusterAccess(kube::Transport& api, const Clock& clock) : api_(api), clock_(clock) {}

  // Decides about a request for a path (PathAttributes) that came from `address`.
  Verdict Ask(std::string_view token, const std::string& address, const Attributes& wanted);

 private:
  // The user of a TokenReview, with the fields of a SubjectAccessReview that name the user.
  struct User {
    std::shared_ptr<const rest::Identity> identity;
    std::string subject;  // JSON: the beginning of the review's spec
  };
  // Answers by a hash, each with its end.
  template <typename T>
  class Cache {
   public:
    std::optional<T> Find(const Sha256Digest& key, MonotonicTime now) const;
    // Returns an answer even after its end, while the cache still has it.
    std::optional<T> FindOld(const Sha256Digest& key) const;
    // A full cache drops ended answers or, without any, the answer that ends first: mostly a
    // refusal.
    void Keep(const Sha256Digest& key, T value, MonotonicTime now, bool granted);

   private:
    struct Entry {
      T value;
      MonotonicTime until;
    };
    mutable Mutex mutex_;
    absl::flat_hash_map<Sha256Digest, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  };
  using UserOrNobody = std::shared_ptr<const User>;

  // Return a kept answer, or ask. Null: nobody has the token.
  absl::StatusOr<UserOrNobody> UserOf(std::string_view token, const std::string& address);
  absl::StatusOr<UserOrNobody> ReviewToken(std::string_view token, const Sha256Digest& key);
  absl::StatusOr<bool> MayDo(const User& user, const Attributes& wanted);
  // Posts a review and returns its status.
  absl::StatusOr<Json> Review(const std::string& group, const std::string& kind, Json spec);

  kube::Transport& api_;
  const Clock& clock_;
  Cache<UserOrNobody> users_;  // by the token's hash
  Cache<bool> allowed_;        // by the hash of user and attributes
  static constexpr ReviewTurns::Limits kTurns{.asking = kAskingMost,
                                              .asking_of_one = kAskingMostOfOne,
                                              .waiting = kWaitingMost,
                                              .waiting_of_one = kWaitingMostOfOne,
                                              .patience = kTurnWithin};
  ReviewTurns known_{kTurns};      // by the user's name
  ReviewTurns strangers_{kTurns};  // by the address
};

}  // namespace tahoma::controller
