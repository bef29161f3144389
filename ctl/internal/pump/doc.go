// Package pump is the shim between an agent's stdio and the daemon's mcp.sock: MCP lines both ways,
// a daemon that may go and come back under it, and one clear answer to every request that the daemon can no longer
// answer. It reads no more of a message than it must (kind, id, method). It is imported by the shim, so it must not
// know encoding/json, gRPC or an MCP library; and it must never print anything but MCP on stdout.
package pump
