package mcpgate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/proto/clientio"
	"github.com/service-dev/service/proto/rendezvous"
)

// preface is the line that opens a stream (proto/rendezvous). Unknown fields are left for later protocols.
type preface struct {
	MCP         int               `json:"mcp"`
	ProtocolMin int               `json:"protocolMin"`
	ProtocolMax int               `json:"protocolMax"`
	Version     string            `json:"version"`
	Client      string            `json:"client"`
	Cwd         string            `json:"cwd"`
	Env         map[string]string `json:"env"`
	ClientIO    bool              `json:"clientIO"`
	Toolset     string            `json:"toolset"`
}

// clientIOHandshake reads the handshake of a connection of proto/clientio; ok is false for any other line.
func clientIOHandshake(line []byte) (h clientio.Handshake, ok bool) {
	err := json.Unmarshal(line, &h)
	return h, err == nil && h.IO == clientio.Version && clientio.IsToken(h.Token)
}

// prefaceAnswer is the daemon's one line in return.
type prefaceAnswer struct {
	OK       bool   `json:"ok"`
	Protocol int    `json:"protocol,omitempty"`
	Version  string `json:"version,omitempty"`
	Code     string `json:"code,omitempty"`
	Message  string `json:"message,omitempty"`
	FixHint  string `json:"fixHint,omitempty"`
	// Repeatable are the tools whose calls the client may send again, once, when this daemon dies before it answers.
	Repeatable []string `json:"repeatable,omitempty"`
}

// Codes of a refused preface.
const (
	codeInvalidPreface   = "invalid_preface"
	codeProtocolMismatch = "protocol_mismatch"
	codeTooManyClients   = "too_many_clients"
	codeRefused          = "refused"
	codeUnknownToolset   = "unknown_toolset"
)

// readPreface understands a preface line; the answer tells the client what became of it.
func readPreface(line []byte, version string) (who caller.Caller, offersIO bool, answer prefaceAnswer) {
	var p preface
	if err := json.Unmarshal(line, &p); err != nil || p.MCP != 1 || !bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) {
		return caller.Caller{}, false, prefaceAnswer{
			Code:    codeInvalidPreface,
			Message: "the first line of the stream is not a preface",
			FixHint: "connect with service-mcp, which sends it",
		}
	}
	if p.ProtocolMax < rendezvous.ProtocolMin || p.ProtocolMin > rendezvous.ProtocolMax || p.ProtocolMin > p.ProtocolMax {
		return caller.Caller{}, false, mismatch(p, version)
	}
	if !rendezvous.Toolset(p.Toolset) {
		return caller.Caller{}, false, prefaceAnswer{
			Code: codeUnknownToolset, Version: version, Message: fmt.Sprintf("there is no toolset %q", printable(p.Toolset)),
			FixHint: "register service-mcp with --tools " + rendezvous.ToolsetLocal + ", or without --tools for every tool",
		}
	}
	return p.caller(), p.ClientIO, prefaceAnswer{OK: true, Protocol: min(p.ProtocolMax, rendezvous.ProtocolMax), Version: version}
}

func mismatch(p preface, version string) prefaceAnswer {
	who, hint := "client", "restart this MCP server in the agent, so that the installed service-mcp runs; if that does not help, upgrade it: the running daemon is "+version
	if p.ProtocolMin > rendezvous.ProtocolMax {
		who, hint = "daemon", "run `servicectl daemon restart`; this connection goes on with the new daemon by itself"
	}
	return prefaceAnswer{
		Code: codeProtocolMismatch, Version: version, FixHint: hint,
		Message: fmt.Sprintf("the %s is too old: the client speaks protocol %d to %d, the daemon %d to %d", who,
			p.ProtocolMin, p.ProtocolMax, rendezvous.ProtocolMin, rendezvous.ProtocolMax),
	}
}

// caller keeps what the allow-list of proto/rendezvous allows, within its bounds.
func (p preface) caller() caller.Caller {
	c := caller.Caller{Env: map[string]string{}, Client: printable(p.Client), Version: printable(p.Version), Toolset: p.Toolset}
	for name, value := range p.Env {
		if slices.Contains(rendezvous.Variables, name) && len(value) <= rendezvous.MaxVariable && !strings.ContainsRune(value, 0) {
			c.Env[name] = value
		}
	}
	if filepath.IsAbs(p.Cwd) && len(p.Cwd) <= rendezvous.MaxVariable && !strings.ContainsRune(p.Cwd, 0) {
		c.Cwd = filepath.Clean(p.Cwd)
	}
	return c
}

// maxName bounds a program's name and version, in bytes; the backend takes no longer ones.
const maxName = 100

// printable makes a name that a program gave itself fit to be shown to a person.
func printable(s string) string {
	s = s[:min(len(s), 4*maxName)]
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	s = strings.TrimSpace(s)
	for len(s) > maxName {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}
