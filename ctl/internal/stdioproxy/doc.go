// Package stdioproxy copies MCP messages between an agent's stdio and the daemon's mcp.sock. It reconnects when the
// daemon is replaced and answers every request that a lost daemon left open. It reads only the kind, id and method of a
// message. Agents spawn many copies of service-mcp, so the package must not import encoding/json, gRPC or an MCP
// library. Stdout carries nothing but MCP.
package stdioproxy
