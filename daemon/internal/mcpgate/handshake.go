package mcpgate

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
)

// handshake is the first line of a stream (internal/rendezvous). Unknown fields are ignored, because later protocols
// may add some.
type handshake struct {
	MCP         int               `json:"mcp"`
	ProtocolMin int               `json:"protocolMin"`
	ProtocolMax int               `json:"protocolMax"`
	Version     string            `json:"version"`
	Client      string            `json:"client"`
	Cwd         string            `json:"cwd"`
	Env         map[string]string `json:"env"`
	ClientIO    bool              `json:"clientIO"`
	Toolset     string            `json:"toolset"`
	Agent       string            `json:"agent"`
}

// readClientIOHandshake reads the handshake of a connection of internal/clientio. ok is false for any other line.
func readClientIOHandshake(line []byte) (h clientio.Handshake, ok bool) {
	err := json.Unmarshal(line, &h)
	return h, err == nil && h.IO == clientio.Version && clientio.IsToken(h.Token)
}

// handshakeReply is the daemon's reply.
type handshakeReply struct {
	OK       bool   `json:"ok"`
	Protocol int    `json:"protocol,omitempty"`
	Version  string `json:"version,omitempty"`
	Code     string `json:"code,omitempty"`
	Message  string `json:"message,omitempty"`
	FixHint  string `json:"fixHint,omitempty"`
	// Repeatable lists the tools whose calls the client may repeat once if this daemon exits before it responds.
	Repeatable []string `json:"repeatable,omitempty"`
}

// readHandshake parses a handshake and returns the caller and the daemon's reply.
func readHandshake(line []byte, version string) (who caller.Caller, offersIO bool, answer handshakeReply) {
	var p handshake
	if err := json.Unmarshal(line, &p); err != nil || p.MCP != 1 ||
		!bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) {
		return caller.Caller{}, false, handshakeReply{
			Code:    problem.CodeInvalidHandshake,
			Message: "the first line of the stream must be a handshake",
			FixHint: "Connect with service-mcp, which sends it.",
		}
	}
	if p.ProtocolMax < rendezvous.MCPProtocolMin || p.ProtocolMin > rendezvous.MCPProtocolMax ||
		p.ProtocolMin > p.ProtocolMax {
		return caller.Caller{}, false, mismatch(p, version)
	}
	if !rendezvous.Toolset(p.Toolset) {
		return caller.Caller{}, false, handshakeReply{
			Code: problem.CodeUnknownToolset, Version: version, Message: fmt.Sprintf("there is no toolset %q",
				caller.Printable(p.Toolset)),
			FixHint: "Register service-mcp with --tools " + rendezvous.ToolsetLocal + ", or without --tools for every tool.",
		}
	}
	who = caller.New(p.Env, p.Cwd, p.Client, p.Version)
	who.Toolset, who.Agent = p.Toolset, caller.Printable(p.Agent)
	return who, p.ClientIO, handshakeReply{OK: true, Protocol: min(p.ProtocolMax, rendezvous.MCPProtocolMax),
		Version: version}
}

func mismatch(p handshake, version string) handshakeReply {
	who, hint := "client", "Restart this MCP server in the agent, so that the installed service-mcp runs; if that does "+
		"not help, upgrade it: the running daemon is "+version+"."
	if p.ProtocolMin > rendezvous.MCPProtocolMax {
		who, hint = "daemon", "Run `servicectl daemon restart`; this connection then continues with the new daemon."
	}
	return handshakeReply{
		Code: problem.CodeProtocolMismatch, Version: version, FixHint: hint,
		Message: fmt.Sprintf("the %s is too old: the client speaks protocol %d to %d, the daemon %d to %d", who,
			p.ProtocolMin, p.ProtocolMax, rendezvous.MCPProtocolMin, rendezvous.MCPProtocolMax),
	}
}
