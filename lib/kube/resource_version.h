// The order of resourceVersions, and the oldest list that may be believed.
//
//   if (IsOlderVersion("99", "100")) …            // as numbers, not as text
//   NewestVersion newest;
//   newest.See(version);                          // of every event
//   if (newest.Admit(list_version) == NewestVersion::Verdict::kRefuse) …   // list again
//
// Since 1.35 Kubernetes promises that resourceVersions of one resource are decimal numbers that
// grow (apimachinery pkg/util/resourceversion). A list without resourceVersion is the most recent
// state, which is more than client-go's "not older than what I saw"; but a server in between, a
// cache or a replica that breaks the promise could still show the past. Going back would undo
// what was told already, so an older list is refused, and asked for again. When it stays old, it
// is the truth: history was lost, as when etcd is restored from a backup. A restored server may
// have come past the old versions since; then only its objects are older than what was seen.
//
// Scope: one resource of one server. Versions that are no numbers have no order: nothing is older.
//
// Thread safety: a value.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tahoma::kube {

// Returns whether both are such numbers and `a` came before `b`.
bool IsOlderVersion(std::string_view a, std::string_view b);

class NewestVersion {
 public:
  // The most older lists in a row that are refused: with the followers' back-off that is 1.5 s,
  // longer than a working replica is behind.
  static constexpr int kRefusalsMax = 4;

  enum class Verdict : std::uint8_t {
    kTake,
    kRefuse,      // older than a version that was seen
    kHistoryLost  // older too, but it stayed so: forget the versions that are known, and take it
  };

  void See(std::string_view version);
  // Judges the version in a list's metadata. A version that is taken counts as seen.
  Verdict Admit(std::string_view version);

  const std::string& version() const { return version_; }

 private:
  std::string version_;
  int refusals_ = 0;
};

}  // namespace tahoma::kube
