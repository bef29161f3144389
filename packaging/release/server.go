package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// serverPackage is the package for operators. Its unit is not enabled, because the server cannot run without keys.
var serverPackage = osPackage{
	name: "service-backend", section: "net", group: "Productivity/Networking/Web/Servers",
	description: "server of the service for several people and machines\n" +
		"Accounts, links of machines, live simulator sessions, projects and the gateway\n" +
		"to AI models, over HTTP. It stores everything in SQLite or PostgreSQL.",
	programs: []string{"service-backend"},
	archive:  "service-backend",
	packages: serverPackages,
	contents: serverContents,
	scripts: map[string]string{
		"postinstall": "service-backend/postinstall.sh",
		"preremove":   "service-backend/preremove.sh",
		"postremove":  "service-backend/postremove.sh",
	},
}

func serverContents(ctx context.Context, r *release, t target, format string) ([]entry, error) {
	var all entries
	dir, err := r.programs(ctx, t)
	all.addOne(entry{name: "usr/bin/service-backend", from: filepath.Join(dir, "service-backend"), mode: 0o755}, err)
	settings, err := r.templated("etc/service-backend/config.yaml", "service-backend/config.yaml", nil)
	settings.config, settings.mode = true, 0o600 // it may contain the database password; systemd passes it to the server
	all.addOne(settings, err)
	if format == "apk" { // Alpine has no systemd: `service-backend service install` registers the server with OpenRC
		return all.list, all.err
	}
	template, err := os.ReadFile(filepath.Join(r.root, "backend/internal/osservice/templates/systemd.service"))
	all.add(nil, err)
	unit, err := serverUnit(string(template))
	all.add(nil, err)
	all.addOne(r.generated("usr/lib/systemd/system/service-backend.service", unit))
	all.addOne(r.templated("usr/lib/sysusers.d/service-backend.conf", "service-backend/sysusers.conf", nil))
	return all.list, all.err
}

// serverUnit returns the packaged form of the template of backend/internal/osservice. With it, systemd reads the
// settings and the keys as root and passes them to the server. The unit is also stricter, because a package has a
// fixed data directory.
func serverUnit(template string) (string, error) {
	text := strings.NewReplacer(
		"{{header}}# Put your own changes in a drop-in (systemctl edit service-backend); updates keep it.\n",
		"# Part of the package service-backend. Put your own changes in a drop-in (systemctl edit service-backend);\n"+
			"# updates keep it.\n",
		"[Unit]\n", "[Unit]\nDocumentation=man:service-backend(1)\n"+
			"AssertPathExists=/etc/service-backend/hmac.key\nAssertPathExists=/etc/service-backend/credentials.key\n",
		"{{program}} --config {{settings}}", `/usr/bin/service-backend \
	--config ${CREDENTIALS_DIRECTORY}/config.yaml \
	--hmac-key-file ${CREDENTIALS_DIRECTORY}/hmac.key \
	--credentials-key-file ${CREDENTIALS_DIRECTORY}/credentials.key
LoadCredential=config.yaml:/etc/service-backend/config.yaml
LoadCredential=hmac.key:/etc/service-backend/hmac.key
LoadCredential=credentials.key:/etc/service-backend/credentials.key`,
		"{{user}}", "service-backend",
		"{{stop}}", "40",
		"ReadWritePaths={{data}}\n", "StateDirectory=service-backend\nStateDirectoryMode=0700\n",
		"\n[Install]", hardening+"\n[Install]",
	).Replace(template)
	if strings.Contains(text, "{{") || !strings.Contains(text, hardening) {
		return "", fmt.Errorf("the template of the server's unit has changed: adapt serverUnit")
	}
	return text, nil
}

// hardening lists the restrictions of the packaged unit that the template lacks.
const hardening = `ProtectHome=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectProc=invisible
ProcSubset=pid
MemoryDenyWriteExecute=yes
RemoveIPC=yes
SystemCallFilter=~@privileged @resources
`
