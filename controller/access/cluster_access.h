// Asks the cluster's API server who the bearer of a token is, and what he may.
//
//   ClusterAccess cluster(transport, clock);
//   const ClusterAccess::Verdict verdict =
//       cluster.Ask(token, "10.0.0.7", PathAttributes("GET", "/metrics"));
//   if (verdict.answer != ClusterAccess::Answer::kAllowed) return PermissionDenied("/metrics");
//
// It posts a TokenReview, and a SubjectAccessReview of the path with the user, uid, groups and
// extra that the first one named, as Kubernetes' own components do for theirs (k8s.io/apiserver
// pkg/authentication/authenticatorfactory and pkg/authorization/authorizerfactory). Answers are
// kept for a while, so a token that was taken back, or a right that was withdrawn, may still count
// for kGrantedFor each, and a new right is seen after kRefusedFor. Of tokens only hashes are kept.
// Without an answer nobody is let in, and that is not kept.
//
// Whoever was let in before asks in turn with others who were; whoever comes with a token that is
// not known, with strangers. Of these turns one user, or one address, has half at most
// (ReviewTurns). So strangers with made up tokens keep neither the known nor a new caller out.
//
// Thread safety: any thread. Ask waits for its turn and for the API server: kBusyMost callers at
// once do.

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
  static constexpr std::size_t kEntriesMost = 1024;  // of tokens, and as many of permissions
  // Reviews at once of those who are known, and as many of strangers.
  static constexpr int kAskingMost = 8;
  static constexpr int kAskingMostOfOne = 4;
  static constexpr int kWaitingMost = 20;  // for a turn, and as many of strangers
  static constexpr int kWaitingMostOfOne = 10;
  // The threads that wait here: fewer than the admin API has (64).
  static constexpr int kBusyMost = 2 * (kAskingMost + kWaitingMost);
  // A caller's own patience with one answer.
  static constexpr std::chrono::seconds kTurnWithin{5};

  enum class Answer : std::uint8_t { kAllowed, kForbidden, kUnknownToken, kNoAnswer };
  struct Verdict {
    Answer answer = Answer::kNoAnswer;
    std::shared_ptr<const rest::Identity> identity = {};  // unless the token is not known
    std::string reason = {};                              // of kNoAnswer: for the caller
  };

  // Both must outlive it.
  ClusterAccess(kube::Transport& api, const Clock& clock) : api_(api), clock_(clock) {}

  // Decides about a request for a path (PathAttributes) that came from that address.
  Verdict Ask(std::string_view token, const std::string& address, const Attributes& wanted);

 private:
  // The user of a TokenReview, with the parts of a SubjectAccessReview that say who he is.
  struct User {
    std::shared_ptr<const rest::Identity> identity;
    std::string subject;  // JSON: the beginning of the review's spec
  };
  // Answers by a hash, each with its end.
  template <typename T>
  class Cache {
   public:
    std::optional<T> Find(const Sha256Digest& key, MonotonicTime now) const;
    // An answer that is kept still, whether or not it has ended.
    std::optional<T> FindOld(const Sha256Digest& key) const;
    // When it is full, what has ended goes, or else what would end first: refusals, mostly.
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

  // Return an answer that is still kept, or ask. Null: the token is nobody's.
  absl::StatusOr<UserOrNobody> UserOf(std::string_view token, const std::string& address);
  absl::StatusOr<UserOrNobody> ReviewToken(std::string_view token, const Sha256Digest& key);
  absl::StatusOr<bool> MayDo(const User& user, const Attributes& wanted);
  // Posts a review and returns its status.
  absl::StatusOr<Json> Review(const std::string& group, const std::string& kind, Json spec);

  kube::Transport& api_;
  const Clock& clock_;
  Cache<UserOrNobody> users_;  // by the token's hash
  Cache<bool> allowed_;        // by the hash of user and question
  static constexpr ReviewTurns::Limits kTurns{.asking = kAskingMost,
                                              .asking_of_one = kAskingMostOfOne,
                                              .waiting = kWaitingMost,
                                              .waiting_of_one = kWaitingMostOfOne,
                                              .patience = kTurnWithin};
  ReviewTurns known_{kTurns};      // by the user's name
  ReviewTurns strangers_{kTurns};  // by the address
};

}  // namespace tahoma::controller
