// The access keys of callers who sign their requests (AWS Signature Version 4).
//
//   TAHOMA_ASSIGN_OR_RETURN(const AccessKeys keys, AccessKeys::Parse(text, "keys.yaml"));
//   const AccessKey* key = keys.Find("AKIAEXAMPLE000000001");   // null: there is none
//
// Such a file is:
//
//   apiVersion: tahoma.dev/v1alpha1
//   kind: AccessKeyFile
//   accessKeys:
//   - {accessKeyId: AKIAEXAMPLE000000001, secretAccessKey: "…", name: ana, namespace: team-a,
//      account: "111122223333"}
//   - {accessKeyId: AKIAEXAMPLE000000002, secretAccessKey: "…", name: bob, namespace: team-a,
//      account: "111122223333", role: view}
//
// docs/formats/ec2-api.md describes it. Unknown keys are errors; sizes are bounded. Signatures are
// made with the secret itself, so unlike tokens it cannot be kept as a digest.
//
// Thread safety: immutable once parsed.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace tahoma::controller {

struct AccessKey {
  std::string id;
  std::string secret;
  std::string name;        // who calls
  std::string name_space;  // who owns what is bought
  std::string account;     // 12 digits: the same, as EC2 shows it
  bool may_buy = false;    // role edit or admin
};

class AccessKeys {
 public:
  static constexpr std::size_t kFileBytesMost = 1 << 20;
  static constexpr std::size_t kKeysMost = 1000;

  // kInvalidArgument names the file, the line or the entry, and what would be right; it holds no
  // secret.
  static absl::StatusOr<AccessKeys> Parse(std::string_view text, std::string_view file);

  const AccessKey* Find(std::string_view id) const;

 private:
  std::map<std::string, AccessKey, std::less<>> keys_;
};

// Returns the keys that are in force. Never null; may be called by any thread.
using CurrentAccessKeys = std::function<std::shared_ptr<const AccessKeys>()>;

// Whether a text is the number of an account: 12 digits.
bool IsAccount(std::string_view text);

}  // namespace tahoma::controller
