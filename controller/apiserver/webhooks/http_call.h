// Asks webhooks over HTTPS.
//
//   options.webhook_call = HttpWebhookCall();
//
// Every question has a connection of its own, which ends at the question's deadline whatever the
// webhook does: a slow head, a slow body, half an answer. An answer may have 4 MiB.
//
// Thread safety: the function may be called from any thread.

#pragma once

#include "controller/apiserver/webhooks/webhooks.h"

namespace tahoma::controller::apiserver {

WebhookCall HttpWebhookCall();

}  // namespace tahoma::controller::apiserver
