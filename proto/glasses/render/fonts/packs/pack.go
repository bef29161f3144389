//go:build ignore

// Command pack writes the packs of WOFF files, for example those of the npm packages @fontsource/noto-sans-thai:
//
//	go run pack.go files/noto-sans-thai-thai-400-normal.woff=thai-400
package main

import (
	"log"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/service-dev/service/proto/glasses/render/fonts"
)

func main() {
	log.SetFlags(0)
	for _, argument := range os.Args[1:] {
		file, name, ok := strings.Cut(argument, "=")
		if !ok {
			log.Fatalf("%s is not FILE=NAME", argument)
		}
		if err := pack(file, name+".ttf.zst"); err != nil {
			log.Fatal(err)
		}
	}
}

func pack(file, to string) error {
	woff, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	ttf, err := fonts.Unpack(woff)
	if err != nil {
		return err
	}
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	return os.WriteFile(to, e.EncodeAll(ttf, nil), 0o644)
}
