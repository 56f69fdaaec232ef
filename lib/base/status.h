// Short functions and macros that make and pass on an absl::Status.
//
//   absl::StatusOr<int> Parse(std::string_view text);
//
//   absl::Status Load(std::string_view text) {
//     if (text.empty()) return InvalidArgument("line {} is empty; expected a number", 3);
//     TAHOMA_ASSIGN_OR_RETURN(const int value, Parse(text));
//     return Store(value);
//   }
//
// The callee states the reason; the caller adds where it happened with Annotate().
//
// Scope: absl::Status is the project's only error type. Debian's abseil is built without
// std::string_view, so messages are made with fmt, never with absl::StrCat.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace tahoma {

#define TAHOMA_DEFINE_STATUS(Name, Code)                                                           \
  template <typename... Args>                                                                      \
  absl::Status Name(fmt::format_string<Args...> format, Args&&... args) {                          \
    return absl::Status(absl::StatusCode::Code, fmt::format(format, std::forward<Args>(args)...)); \
  }
TAHOMA_DEFINE_STATUS(InvalidArgument, kInvalidArgument)
TAHOMA_DEFINE_STATUS(NotFound, kNotFound)
TAHOMA_DEFINE_STATUS(AlreadyExists, kAlreadyExists)
TAHOMA_DEFINE_STATUS(FailedPrecondition, kFailedPrecondition)
TAHOMA_DEFINE_STATUS(ResourceExhausted, kResourceExhausted)
TAHOMA_DEFINE_STATUS(PermissionDenied, kPermissionDenied)
TAHOMA_DEFINE_STATUS(Unauthenticated, kUnauthenticated)
TAHOMA_DEFINE_STATUS(Aborted, kAborted)
TAHOMA_DEFINE_STATUS(OutOfRange, kOutOfRange)
TAHOMA_DEFINE_STATUS(Unimplemented, kUnimplemented)
TAHOMA_DEFINE_STATUS(Unavailable, kUnavailable)
TAHOMA_DEFINE_STATUS(DeadlineExceeded, kDeadlineExceeded)
TAHOMA_DEFINE_STATUS(DataLoss, kDataLoss)
TAHOMA_DEFINE_STATUS(Internal, kInternal)
#undef TAHOMA_DEFINE_STATUS

// The message as a std::string_view (absl's own string_view does not convert to it).
inline std::string_view Message(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

// "where: message", same code; an OK status stays as it is.
inline absl::Status Annotate(const absl::Status& status, std::string_view where) {
  if (status.ok()) return status;
  return absl::Status(status.code(), fmt::format("{}: {}", where, Message(status)));
}

}  // namespace tahoma

#define TAHOMA_RETURN_IF_ERROR(expression)         \
  do {                                             \
    ::absl::Status tahoma_status = (expression);   \
    if (!tahoma_status.ok()) return tahoma_status; \
  } while (false)

#define TAHOMA_CONCAT_INNER(a, b) a##b
#define TAHOMA_CONCAT(a, b) TAHOMA_CONCAT_INNER(a, b)
#define TAHOMA_ASSIGN_OR_RETURN_INNER(tmp, lhs, expression) \
  auto tmp = (expression);                                  \
  if (!tmp.ok()) return std::move(tmp).status();            \
  lhs = *std::move(tmp)
#define TAHOMA_ASSIGN_OR_RETURN(lhs, expression) \
  TAHOMA_ASSIGN_OR_RETURN_INNER(TAHOMA_CONCAT(tahoma_or_, __LINE__), lhs, expression)
