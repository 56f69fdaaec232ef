// The server's side of TLS: certificate, client certificates, and their subjects.
//
// Scope: OpenSSL contexts; lib/rest/connection.h moves the bytes.
//
// Thread safety: a context may be used by many connections at the same time.

#pragma once

#include <absl/status/statusor.h>
#include <openssl/ssl.h>

#include <optional>
#include <string>

#include "lib/base/tls.h"
#include "lib/rest/message.h"
#include "lib/rest/server.h"

namespace tahoma::rest {

// TLS 1.2 or later. kInvalidArgument names the file that is missing or does not fit.
absl::StatusOr<SslContext> MakeServerContext(const TlsOptions& options);

// Nothing when the peer sent no certificate that was verified.
std::optional<ClientSubject> SubjectOf(const SSL& ssl);

}  // namespace tahoma::rest
