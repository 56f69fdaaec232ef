// A deleter for std::unique_ptr that calls a function of a C library.
//
//   std::unique_ptr<BIGNUM, FreedBy<&BN_free>> number(BN_new());
//
// Thread safety: a value without state.

#pragma once

namespace tahoma {

template <auto kFree>
struct FreedBy {
  template <typename T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};

}  // namespace tahoma
