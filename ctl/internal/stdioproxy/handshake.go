package stdioproxy

import (
	"strconv"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
)

// Handshake describes this process in the first line to the daemon (rendezvous.MCPPreface).
type Handshake struct {
	Client, Version, Cwd string
	Env                  map[string]string
	// Agent identifies this process across reconnects.
	Agent string
	// Toolset selects the listed tools (rendezvous.Toolset…). The daemon refuses unknown names.
	Toolset string
}

// line returns the first line of a connection. It omits the working directory or variables that would exceed the size
// limit.
func (h Handshake) line() []byte {
	line := `{"mcp":1,"protocolMin":` + strconv.Itoa(rendezvous.MCPProtocolMin) + `,"protocolMax":` +
		strconv.Itoa(rendezvous.MCPProtocolMax) +
		`,"version":` + quote(h.Version) + `,"client":` + quote(h.Client)
	if h.Cwd != "" && len(h.Cwd) <= rendezvous.MaxVariable {
		line += `,"cwd":` + quote(h.Cwd)
	}
	if h.Toolset != "" && len(h.Toolset) <= rendezvous.MaxVariable {
		line += `,"toolset":` + quote(h.Toolset)
	}
	if h.Agent != "" {
		line += `,"agent":` + quote(h.Agent)
	}
	line += `,"env":{`
	first := true
	for name, value := range h.Env {
		pair := quote(name) + ":" + quote(value)
		if len(line)+len(pair)+24 > rendezvous.MaxHandshake {
			continue
		}
		if !first {
			line += ","
		}
		first = false
		line += pair
	}
	return []byte(line + `},"clientIO":true}` + "\n")
}

// repeatableTools returns the tools whose calls the proxy may repeat, according to the daemon.
func repeatableTools(line []byte) map[string]bool {
	tools := map[string]bool{}
	s := scanner{data: member(line, "repeatable")}
	_ = s.elements(1, func() error {
		start := s.pos
		err := s.value(2)
		if err == nil {
			tools[unquote(s.data[start:s.pos])] = true
		}
		return err
	})
	return tools
}

// admitted returns an error unless line accepts the handshake.
func admitted(line []byte) error {
	if string(member(line, "ok")) == "true" {
		return nil
	}
	code := unquote(member(line, "code"))
	text := unquote(member(line, "message"))
	hint := unquote(member(line, "fixHint"))
	if code == "" {
		return &problem.Error{Code: "daemon_refused", Message: "the daemon's first line must be a response to the handshake",
			FixHint: "Run `servicectl doctor`."}
	}
	return &problem.Error{Code: code, Message: text, FixHint: hint}
}

// clientIOToken returns the token of a client-io frame (rendezvous.ClientIOFrame), or "" if it is malformed. ok is
// true for every line with that prefix, so that none reaches the agent.
func clientIOToken(line []byte) (token string, ok bool) {
	const head, end = rendezvous.ClientIOFrame, rendezvous.ClientIOFrameEnd
	if len(line) < len(head) || string(line[:len(head)]) != head {
		return "", false
	}
	rest := line[len(head):]
	n := 0
	for n < len(rest) && n <= maxToken && isTokenByte(rest[n]) {
		n++
	}
	if n == 0 || n > maxToken || len(rest) < n+len(end) || string(rest[n:n+len(end)]) != end {
		return "", true
	}
	return string(rest[:n]), true
}

const maxToken = 64

func isTokenByte(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}
