// Makes the folders of a sim-node's unix sockets: private folders, and folders that pods may enter.
//
//   TAHOMA_RETURN_IF_ERROR(MakePrivateFolder("/run/tahoma/node.sock"));
//   TAHOMA_RETURN_IF_ERROR(MakeWorkloadFolder("/run/tahoma/node.sock.pods/workload.sock"));
//
// An existing folder is never changed: the folder may be /tmp.
//
// Thread safety: once, at the program's start.

#pragma once

#include <absl/status/status.h>

#include <string>

namespace tahoma::sim {

// Makes the socket's folder with mode 0700. For an existing folder, checks that only its owner can
// enter and that the owner is our user or root; kFailedPrecondition otherwise.
absl::Status MakePrivateFolder(const std::string& socket);

// Makes the socket's folder with mode 0755: other users can enter, only we can write, and the
// folder holds nothing but the socket.
absl::Status MakeWorkloadFolder(const std::string& socket);

}  // namespace tahoma::sim
