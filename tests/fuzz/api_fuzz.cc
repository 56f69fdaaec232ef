// Conversations with the standalone API server: creates, updates, patches of every type, applies,
// deletes, reads and watches, as bytes say. Whatever they are, each request gets an answer that is
// not a mistake of ours, and every object can be read and written afterwards.

#include <functional>
#include <string_view>

#include "tests/fuzz/api_under_test.h"
#include "tests/fuzz/fuzz_target.h"

void FuzzOne(std::string_view input) {
  static tahoma::fuzz::ApiUnderTest api;
  api.BeginInput();
  for (const auto& request : tahoma::fuzz::ReadConversation(input)) api.Ask(request);
  // Opening the store costs more than all the rest.
  constexpr std::size_t kOpenedAgain = 16;
  api.CheckObjects(std::hash<std::string_view>()(input) % kOpenedAgain == 0);
}
