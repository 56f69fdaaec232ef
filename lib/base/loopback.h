// Recognizes hosts and addresses that only this machine can reach.
//
//   IsLoopback("127.0.0.1:8001");    // true
//   IsLoopback("0.0.0.0:8001");      // false: every interface of the machine
//   IsLoopbackHost("127.0.0.1");     // true
//
// Scope: text; nothing is resolved.

#pragma once

#include <string_view>

namespace tahoma {

// localhost, 127.0.0.0/8 as numbers, or ::1 without brackets. A name such as 127.example.com may
// stand for any address.
bool IsLoopbackHost(std::string_view host);

// The same for "host:port", with brackets around an IPv6 address.
bool IsLoopback(std::string_view address);

}  // namespace tahoma
