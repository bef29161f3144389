// Package stdioproxy copies MCP messages between an agent's stdio and the daemon's mcp.sock. It reconnects when the
// daemon is replaced and responds to every request that a lost daemon left open. It reads only the kind, ID and method
// of a message. Agents start many service-mcp processes, so the package must not import encoding/json, gRPC or an MCP
// library. It writes only MCP messages to stdout.
package stdioproxy
