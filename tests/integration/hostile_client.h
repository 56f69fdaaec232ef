// A hostile client of the API server: conversations of tests/fuzz/corpus/api with types swapped,
// bytes broken, wrong content types, odd headers, half bodies, connections cut in the middle,
// watches opened and dropped, and patches of other people's objects.
//
//   HostileClient client({.port = port, .seed = 17, .theirs = {"/api/v1/…/pods/train-0"}});
//   while (…) client.Act();
//   EXPECT_THAT(client.complaints(), IsEmpty());
//
// The client's own objects are in the namespace "hostile". Objects in `theirs` get new annotations
// and labels without a meaning, or changes that must be refused.
//
// Thread safety: belongs to one thread.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/rng.h"
#include "lib/rest/message.h"
#include "tests/fuzz/mutate.h"

namespace tahoma::testing {

inline constexpr const char* kHostileNamespace = "hostile";

class HostileClient {
 public:
  struct Options {
    int port = 0;
    std::uint64_t seed = 0;
    std::vector<std::string> theirs = {};  // paths of objects
  };
  explicit HostileClient(Options options);

  // One conversation or one attack.
  void Act();
  // Makes a plain request that any client may make; complains without an answer within ten seconds.
  void AskPlainly();

  std::uint64_t acts() const { return acts_; }
  // Returns the number of answers with each HTTP status.
  const std::map<int, std::uint64_t>& statuses() const { return statuses_; }
  // Complaints about illegal answers: 500 and the like, or no answer to a plain request.
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  void Converse();
  void BreakBytes();
  void Cut();
  void HalfBody();
  void DropWatch();
  void PatchTheirs();

  const std::vector<rest::Request>& AnyConversation();
  // Returns the request as HTTP, with odd headers now and then.
  std::string Written(const rest::Request& request);
  // Sends the bytes, ends sending and judges all answers; returns them.
  std::string Exchange(const std::string& bytes);
  void Judge(const std::string& sent, std::string_view answers);
  void Complain(const std::string& about, std::string_view answer);

  const Options options_;
  Rng rng_;
  const fuzz::Mutator mutator_;
  std::vector<std::vector<rest::Request>> conversations_;
  std::uint64_t acts_ = 0;
  std::map<int, std::uint64_t> statuses_;
  std::vector<std::string> complaints_;
};

}  // namespace tahoma::testing
