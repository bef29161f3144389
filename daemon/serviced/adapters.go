package main

import (
	"path/filepath"
	"strings"

	"github.com/service-dev/service/internal/programpath"
	"github.com/service-dev/service/plugins/backendhttp"
	"github.com/service-dev/service/plugins/backendlocal"
	"github.com/service-dev/service/plugins/browsersim"
	"github.com/service-dev/service/plugins/localsim"
	"github.com/service-dev/service/plugins/realdevice"
)

// adapters maps program names to the main functions of the shipped adapters. Each adapter runs in its own process, but
// all of them share this program file, because most of their code is the same.
var adapters = map[string]func(){
	programpath.AdapterPrefix + "backendhttp":  backendhttp.Main,
	programpath.AdapterPrefix + "backendlocal": backendlocal.Main,
	programpath.AdapterPrefix + "browsersim":   browsersim.Main,
	programpath.AdapterPrefix + "localsim":     localsim.Main,
	programpath.AdapterPrefix + "realdevice":   realdevice.Main,
}

// adapterOf returns the main function of the adapter with a program name, or nil if this build does not contain that
// adapter. isAdapter reports whether the name is the name of an adapter.
func adapterOf(argv0 string) (adapter func(), isAdapter bool) {
	name := strings.TrimSuffix(filepath.Base(argv0), ".exe")
	return adapters[name], strings.HasPrefix(name, programpath.AdapterPrefix)
}
