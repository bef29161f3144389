package osservice

import (
	_ "embed"
	"encoding/xml"
	"path/filepath"
	"strings"

	"github.com/service-dev/service/internal/rendezvous"
)

// plistSign marks a launchd property list as written by `servicectl service install`.
const plistSign = "<!-- Written by servicectl service install"

//go:embed templates/agent.plist
var agentTemplate string

// agentPlist returns the launchd agent, which runs the daemon from login on and restarts it if it fails. It does not
// use socket activation, because launchd passes sockets only through a C library function and the programs are built
// without cgo.
func agentPlist(d daemon, label string) string {
	log := filepath.Join(d.paths.Dir, rendezvous.LogDir, "serviced.stderr")
	return expand(agentTemplate, "label", escaped(label), "program", escaped(d.program),
		"directory", escaped(d.paths.Dir), "log", escaped(log))
}

// escaped escapes s for XML.
func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// plistProgram returns the program that an agent starts, which is the first string after ProgramArguments. It returns
// "" if there is none.
func plistProgram(data string) string {
	dec := xml.NewDecoder(strings.NewReader(data))
	after := false
	for {
		token, err := dec.Token()
		if err != nil {
			return ""
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "key" && start.Name.Local != "string" {
			continue
		}
		var content string
		if err := dec.DecodeElement(&content, &start); err != nil {
			return ""
		}
		if after && start.Name.Local == "string" {
			return content
		}
		after = after || start.Name.Local == "key" && content == "ProgramArguments"
	}
}
