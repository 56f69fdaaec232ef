// Makes the folders of a sim-node's unix sockets: one kind that nobody else may enter, and one that
// pods may enter.
//
//   TAHOMA_RETURN_IF_ERROR(MakePrivateFolder("/run/tahoma/node.sock"));
//   TAHOMA_RETURN_IF_ERROR(MakeWorkloadFolder("/run/tahoma/node.sock.pods/workload.sock"));
//
// A folder that is there already is never changed: it may be /tmp.
//
// Thread safety: once, at the program's start.

#pragma once

#include <absl/status/status.h>

#include <string>

namespace tahoma::sim {

// Makes the folder of the socket with mode 0700, or sees that nobody but its owner, who is our user
// or root, can enter it: kFailedPrecondition otherwise.
absl::Status MakePrivateFolder(const std::string& socket);

// The same with mode 0755 for a folder that others can enter and only we can write, and in which
// there is nothing but the socket.
absl::Status MakeWorkloadFolder(const std::string& socket);

}  // namespace tahoma::sim
