package osservice

import (
	"strings"
)

// unitSign is in every unit that install wrote, of whatever version.
const unitSign = "# Written by `servicectl service install`"

// mark begins each unit that is ours.
const mark = unitSign + "; `servicectl service uninstall` removes it. Your own changes belong into a\n" +
	"# drop-in (`systemctl --user edit NAME`), which stays.\n"

// socketUnit is the unit whose sockets are the very ones that clients dial, so that the first of them starts the daemon.
func socketUnit(d daemon) string {
	return strings.ReplaceAll(mark, "NAME", d.name+".socket") + `[Unit]
Description=Sockets of the service's daemon

[Socket]
ListenStream=` + specifiers(d.paths.Control) + `
ListenStream=` + specifiers(d.paths.MCP) + `
SocketMode=0600
DirectoryMode=0700
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
`
}

// serviceUnit is the daemon's unit. What it forbids are things that no part of the daemon does and that need neither
// privileges nor a namespace of users, which a user's service manager cannot count on: options such as ProtectSystem or
// PrivateTmp would keep the daemon from starting on computers that forbid those. The browser is opened outside this
// unit (package opener), for browsers need what is forbidden here and outlive the daemon.
func serviceUnit(d daemon) string {
	return strings.ReplaceAll(mark, "NAME", d.name+".service") + `[Unit]
Description=The service's daemon
Requires=` + d.name + `.socket
After=` + d.name + `.socket
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart=` + quoted(d.program) + ` run --managed
Environment=` + quoted("SERVICE_CONFIG_DIR="+d.paths.Dir) + `
UnsetEnvironment=SERVICE_BACKEND_URL SERVICE_NO_AUTO_OPEN SERVICE_TELEMETRY DO_NOT_TRACK CI
WorkingDirectory=/
Restart=on-failure
RestartSec=1
TimeoutStartSec=60
TimeoutStopSec=30
WatchdogSec=60
KillMode=mixed
OOMPolicy=continue

UMask=0077
LimitCORE=0
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
`
}

// specifiers keeps systemd from expanding %.
func specifiers(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// quoted is one word of a unit's line, whatever is in it.
func quoted(s string) string {
	return `"` + specifiers(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)) + `"`
}

// programOf reads back which program a unit of ours starts; empty when it cannot be told.
func programOf(unit string) string {
	for line := range strings.Lines(unit) {
		rest, ok := strings.CutPrefix(line, `ExecStart="`)
		if !ok {
			continue
		}
		var b strings.Builder
		for i := 0; i < len(rest); i++ {
			switch c := rest[i]; {
			case c == '"':
				return b.String()
			case (c == '\\' || c == '%') && i+1 < len(rest):
				i++
				b.WriteByte(rest[i])
			default:
				b.WriteByte(c)
			}
		}
	}
	return ""
}

// properties reads the answer of `systemctl show` for several units: NAME=VALUE lines, an empty line between units.
func properties(text string) []map[string]string {
	units := []map[string]string{{}}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		last := units[len(units)-1]
		if line == "" {
			if len(last) > 0 {
				units = append(units, map[string]string{})
			}
			continue
		}
		if name, value, ok := strings.Cut(line, "="); ok {
			last[name] = value
		}
	}
	if len(units) > 1 && len(units[len(units)-1]) == 0 {
		units = units[:len(units)-1]
	}
	return units
}
