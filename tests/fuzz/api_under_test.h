// The standalone API server for fuzz targets: real requests, a store of its own, one thread.
//
//   ApiUnderTest api;                                    // with the Gang kind and a few objects
//   for (const rest::Request& r : ReadConversation(input)) api.Ask(r);
//   api.CheckObjects();
//
// Ask aborts on answers that no client may cause: an exception, a 500 of our own, a 503, an answer
// that does not fit its Content-Type. CheckObjects aborts unless every new or changed object can
// still be read, written back without a change, and changed.
//
// Scope: rules for every request. Unit tests check the meaning of each kind of request.
//
// Thread safety: belongs to one thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/http/api_server.h"
#include "controller/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/rest/message.h"
#include "tests/fuzz/conversation.h"
#include "tests/support/temp_dir.h"

namespace tahoma::fuzz {

struct Answered {
  int status = 0;
  std::shared_ptr<Json> body;  // discarded (nlohmann's) when not JSON
  std::string text;
};

class ApiUnderTest {
 public:
  ApiUnderTest();
  ~ApiUnderTest();

  // Starts anew after a change: no input sees the objects of the input before.
  void BeginInput();
  Answered Ask(const rest::Request& request);
  Answered Ask(const std::string& method, const std::string& target, const std::string& body = "",
               const std::string& content_type = "application/json");
  // Checks all objects, as above. With `again` also opens the store again, which must hold the
  // same.
  void CheckObjects(bool again);

  const controller::apiserver::ApiServer& server() const { return *server_; }

 private:
  void Open();
  void MakeObjects();
  void CheckObject(const controller::apiserver::Kind& kind,
                   const controller::apiserver::Object& object);
  std::vector<std::string> Texts() const;

  std::unique_ptr<testing::TempDir> folder_;
  ManualClock clock_;
  std::unique_ptr<controller::Store> store_;
  std::unique_ptr<controller::apiserver::ApiServer> server_;
  std::int64_t first_version_ = 0;  // at the beginning of the input
};

}  // namespace tahoma::fuzz
