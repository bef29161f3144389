package web

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"io/fs"
	"net/http"
)

// The simulator page's program: Go compiled to WebAssembly by `make wasm`. A build without it still serves everything
// else, and the page says what is missing.
//
//go:embed wasm
var programFiles embed.FS

const (
	programName = "simulator.wasm"
	loaderName  = "wasm_exec.js"
)

// addProgram adds the program and its loader where this build has them.
func (s assetSet) addProgram() {
	packed, loader := "wasm/"+programName+".gz", "wasm/"+loaderName
	for _, name := range []string{packed, loader} {
		if _, err := fs.Stat(programFiles, name); err != nil {
			return
		}
	}
	s.add(programName, embedded(programFiles, packed), true)
	s.add(loaderName, embedded(programFiles, loader), false)
}

// program gives the addresses of the program and its loader; nil where this build has none.
func (s assetSet) program() map[string]string {
	addresses := map[string]string{}
	for key, name := range map[string]string{"wasm": programName, "loader": loaderName} {
		url, err := s.url(name)
		if err != nil {
			return nil
		}
		addresses[key] = url
	}
	return addresses
}

// unpackTo writes a gzipped asset for the rare client that does not take it so.
func (c content) unpackTo(rw http.ResponseWriter) {
	r, err := gzip.NewReader(bytes.NewReader(c.body))
	if err != nil {
		http.Error(rw, "the file is damaged", http.StatusInternalServerError)
		return
	}
	_, _ = io.Copy(rw, r) // #nosec G110 -- it is our own file
}
