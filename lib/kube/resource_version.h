// The order of resourceVersions, and the oldest list to believe.
//
//   if (IsOlderVersion("99", "100")) …            // as numbers, not as text
//   NewestVersion newest;
//   newest.See(version);                          // of every event
//   if (newest.Admit(list_version) == NewestVersion::Verdict::kRefuse) …   // list again
//
// Since 1.35 Kubernetes promises that resourceVersions of a resource are decimal numbers that grow
// (apimachinery pkg/util/resourceversion). A list without resourceVersion is the most recent state,
// more than client-go's "not older than what I saw". But a server in between, a cache or a replica
// that breaks the promise, could still show the past. Going back would undo told changes, so an
// older list is refused and asked for again. A list that stays old is the truth: history was lost,
// as when etcd is restored from a backup. A restored server may have passed the old versions
// meanwhile; then only its objects are older than the seen objects.
//
// Scope: one resource of one server. Versions other than numbers have no order: none is older.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tahoma::kube {

// Returns whether both are such numbers and `a` came before `b`.
bool IsOlderVersion(std::string_view a, std::string_view b);

class NewestVersion {
 public:
  // The most refusals of older lists in a row: with the followers' back-off 1.5 s, longer than a
  // working replica lags.
  static constexpr int kRefusalsMax = 4;

  enum class Verdict : std::uint8_t {
    kTake,
    kRefuse,      // older than a seen version
    kHistoryLost  // older, and stayed older: forget the known versions and take the list
  };

  void See(std::string_view version);
  // Judges the version in a list's metadata. A taken version counts as seen.
  Verdict Admit(std::string_view version);

  const std::string& version() const { return version_; }

 private:
  std::string version_;
  int refusals_ = 0;
};

}  // namespace tahoma::kube
