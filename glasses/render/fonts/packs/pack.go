//go:build ignore

// Command pack converts WOFF files to packs, for example files of the npm packages @fontsource/noto-sans-thai:
//
//	go run pack.go files/noto-sans-thai-thai-400-normal.woff=thai-400
package main

import (
	"log"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/service-dev/service/glasses/render/fonts"
)

func main() {
	log.SetFlags(0)
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	stopOn(err)
	for _, argument := range os.Args[1:] {
		file, name, _ := strings.Cut(argument, "=")
		woff, err := os.ReadFile(file)
		stopOn(err)
		ttf, err := fonts.Unpack(woff)
		stopOn(err)
		stopOn(os.WriteFile(name+".ttf.zst", e.EncodeAll(ttf, nil), 0o644))
	}
}

func stopOn(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
