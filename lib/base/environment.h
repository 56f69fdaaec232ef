// Variables of the process's environment.
//
//   const std::string folder = FromEnvironment("HOME");
//
// Scope: reading. Only programs ask; a library gets what it needs.
//
// Thread safety: any thread, while nobody changes the environment.

#pragma once

#include <cstdlib>
#include <string>

namespace tahoma {

// Empty for a variable that is not set, or is empty.
inline std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace tahoma
