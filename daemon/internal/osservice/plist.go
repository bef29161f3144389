package osservice

import (
	"encoding/xml"
	"path/filepath"
	"strings"

	"github.com/service-dev/service/proto/rendezvous"
)

// plistSign is in every agent that install wrote, of whatever version.
const plistSign = "<!-- Written by servicectl service install"

// agentPlist is the launchd agent: the daemon runs from login on and comes back when it fails. It is not started by its
// sockets: launchd hands those over through a call of the C library only, and the programs are built without cgo.
func agentPlist(d daemon, label string) string {
	log := filepath.Join(d.paths.Dir, rendezvous.LogDir, "serviced.stderr")
	return xml.Header + `<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
` + plistSign + `; servicectl service uninstall removes it. -->
<plist version="1.0">
<dict>
	<key>Label</key>
	` + text(label) + `
	<key>ProgramArguments</key>
	<array>
		` + text(d.program) + `
		<string>run</string>
		<string>--managed</string>
	</array>
	<key>EnvironmentVariables</key>
	<dict>
		<key>SERVICE_CONFIG_DIR</key>
		` + text(d.paths.Dir) + `
	</dict>
	<key>WorkingDirectory</key>
	<string>/</string>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>ThrottleInterval</key>
	<integer>10</integer>
	<key>ExitTimeOut</key>
	<integer>30</integer>
	<key>AbandonProcessGroup</key>
	<true/>
	<key>Umask</key>
	<integer>63</integer>
	<key>LimitLoadToSessionType</key>
	<string>Aqua</string>
	<key>StandardErrorPath</key>
	` + text(log) + `
</dict>
</plist>
`
}

// text is a string of a property list.
func text(s string) string { return "<string>" + escaped(s) + "</string>" }

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// plistProgram reads back which program an agent starts: the first string after ProgramArguments; empty when it cannot
// be told.
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
