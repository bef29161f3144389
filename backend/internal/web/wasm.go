package web

import (
	"compress/gzip"
	"embed"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/service-dev/service/glasses/render/fonts/packs"
)

// The simulator page's Go program, compiled to WebAssembly by `make wasm`. A build without it serves all other pages,
// and the simulator page reports that the program is missing.
//
//go:embed wasm
var programFiles embed.FS

const (
	programName = "simulator.wasm"
	loaderName  = "wasm_exec.js"
	fontType    = ".ttf"
)

// addProgram adds the program, its loader and its fonts, if this build has them. The program fetches a font when a text
// first needs it.
func (s assetSet) addProgram() {
	packed, loader := "wasm/"+programName+".gz", "wasm/"+loaderName
	for _, name := range []string{packed, loader} {
		if _, err := fs.Stat(programFiles, name); err != nil {
			return
		}
	}
	program := embeddedFile(programFiles, packed)
	s.add(asset{name: programName, encoding: "gzip", body: program,
		unpacked: shared(func() []byte { return gunzip(program()) })})
	s.add(asset{name: loaderName, body: embeddedFile(programFiles, loader)})
	s.addFonts()
}

func (s assetSet) addFonts() {
	files, err := fs.Glob(packs.Files, "*"+packs.Suffix)
	if err != nil {
		panic(err) // the pattern is invalid
	}
	for _, file := range files {
		font := strings.TrimSuffix(file, packs.Suffix)
		s.add(asset{name: font + fontType, encoding: "zstd", body: embeddedFile(packs.Files, file),
			unpacked: shared(func() []byte { return must(packs.Read(font)) })})
	}
}

// programURLs holds the URLs of the simulator page's program.
type programURLs struct {
	Wasm   string            `json:"wasm"`
	Loader string            `json:"loader"`
	Fonts  map[string]string `json:"fonts"` // URLs by font name
}

// program returns the URLs, or nil if this build has no program.
func (s assetSet) program() *programURLs {
	if _, ok := s[programName]; !ok {
		return nil
	}
	urls := programURLs{Wasm: s[programName].url(), Loader: s[loaderName].url(), Fonts: map[string]string{}}
	for name, a := range s {
		if font, ok := strings.CutSuffix(name, fontType); ok {
			urls.Fonts[font] = a.url()
		}
	}
	return &urls
}

// gunzip unpacks an embedded file that was compressed by `make wasm`.
func gunzip(packed io.Reader) []byte {
	body := must(io.ReadAll(must(gzip.NewReader(packed)))) // #nosec G110 -- our own file
	return slices.Clone(body)                              // removes spare capacity, because the file is kept
}
