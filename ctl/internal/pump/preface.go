package pump

import (
	"strconv"

	"github.com/service-dev/service/proto/rendezvous"
)

// Hello is what the preface tells the daemon of this process (rendezvous.MCPPreface).
type Hello struct {
	Client, Version, Cwd string
	Env                  map[string]string
	// Toolset is which tools the list holds (rendezvous.Toolset…); the daemon refuses what it does not know.
	Toolset string
}

// preface is the line that opens a stream. A working directory or variable that would pass the line's limit is left out.
func (h Hello) preface() []byte {
	line := `{"mcp":1,"protocolMin":` + strconv.Itoa(rendezvous.ProtocolMin) + `,"protocolMax":` + strconv.Itoa(rendezvous.ProtocolMax) +
		`,"version":` + quote(h.Version) + `,"client":` + quote(h.Client)
	if h.Cwd != "" && len(h.Cwd) <= rendezvous.MaxVariable {
		line += `,"cwd":` + quote(h.Cwd)
	}
	if h.Toolset != "" && len(h.Toolset) <= rendezvous.MaxVariable {
		line += `,"toolset":` + quote(h.Toolset)
	}
	line += `,"env":{`
	first := true
	for name, value := range h.Env {
		pair := quote(name) + ":" + quote(value)
		if len(line)+len(pair)+24 > rendezvous.MaxPreface {
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

// repeatableTools are the tools whose calls the daemon allows to be repeated.
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

// admitted reads the daemon's answer to the preface.
func admitted(line []byte) error {
	if string(member(line, "ok")) == "true" {
		return nil
	}
	code := unquote(member(line, "code"))
	text := unquote(member(line, "message"))
	hint := unquote(member(line, "fixHint"))
	if code == "" {
		return &Failure{Code: "daemon_refused", Message: "the daemon's first line is not an answer to the preface", FixHint: "run `servicectl doctor`"}
	}
	return &Failure{Code: code, Message: text, FixHint: hint}
}

// clientIOToken finds the token in the daemon's private frame (rendezvous.ClientIOFrame). ok is true for every line that
// begins like one, so that none reaches the agent; a token that has not the form of one is empty.
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
