package web

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"io/fs"
)

// The simulator page's Go program, compiled to WebAssembly by `make wasm`. A build without it still serves everything
// else, and the page says what is missing.
//
//go:embed wasm
var programFiles embed.FS

const (
	programName = "simulator.wasm"
	loaderName  = "wasm_exec.js"
)

// addProgram adds the program and its loader if this build has them.
func (s assetSet) addProgram() {
	packed, loader := "wasm/"+programName+".gz", "wasm/"+loaderName
	for _, name := range []string{packed, loader} {
		if _, err := fs.Stat(programFiles, name); err != nil {
			return
		}
	}
	s.add(programName, embeddedFile(programFiles, packed), true)
	s.add(loaderName, embeddedFile(programFiles, loader), false)
}

// program returns the URLs of the program and its loader, or nil if this build has none.
func (s assetSet) program() map[string]string {
	urls := map[string]string{}
	for key, name := range map[string]string{"wasm": programName, "loader": loaderName} {
		url, err := s.url(name)
		if err != nil {
			return nil
		}
		urls[key] = url
	}
	return urls
}

// unpack returns the content of a gzipped asset for the rare client that does not accept gzip.
func (c content) unpack() []byte {
	r, err := gzip.NewReader(bytes.NewReader(c.body))
	if err != nil {
		panic(err) // embedded as `make wasm` wrote it
	}
	var out bytes.Buffer
	if _, err := io.Copy(&out, r); err != nil { // #nosec G110 -- our own file
		panic(err)
	}
	return out.Bytes()
}
