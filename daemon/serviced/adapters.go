package main

import (
	"path/filepath"
	"strings"

	"github.com/service-dev/service/plugins/backendhttp"
	"github.com/service-dev/service/plugins/backendlocal"
	"github.com/service-dev/service/plugins/browsersim"
	"github.com/service-dev/service/plugins/localsim"
	"github.com/service-dev/service/plugins/realdevice"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// adapterOf returns the main function of the shipped adapter whose program name this process has, or nil for the
// daemon. Each adapter is a process of its own, but all are this one file, because they have most of its code.
func adapterOf(argv0 string) func() {
	program := strings.TrimSuffix(filepath.Base(argv0), ".exe")
	name, _ := strings.CutPrefix(program, pluginv1.ProgramPrefix)
	switch name {
	case "backendhttp":
		return backendhttp.Main
	case "backendlocal":
		return backendlocal.Main
	case "browsersim":
		return browsersim.Main
	case "localsim":
		return localsim.Main
	case "realdevice":
		return realdevice.Main
	}
	return nil
}
