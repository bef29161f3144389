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
		if len(line)+len(pair)+4 > rendezvous.MaxPreface {
			continue
		}
		if !first {
			line += ","
		}
		first = false
		line += pair
	}
	return []byte(line + "}}\n")
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
