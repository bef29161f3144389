// Package packs embeds the compressed font files of every script. Import it for its side effect, which is that the
// renderer uses them. A file is unpacked when a text first needs it.
package packs

import (
	"embed"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/service-dev/service/glasses/render/fonts"
)

// Files contains the fonts, compressed with Zstandard (RFC 8878), and their licence.
//
//go:embed *.zst *.txt
var Files embed.FS

// Suffix is the file name suffix of the fonts in Files.
const Suffix = ".ttf.zst"

// maxUnpacked is the maximum size of an unpacked font in bytes.
const maxUnpacked = 32 << 20

func init() { fonts.Use(Read) }

// decoder is created when the first font is needed.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxUnpacked))
})

// Read returns the TrueType font with this name, e.g. "thai-400".
func Read(name string) ([]byte, error) {
	ttf, err := Files.ReadFile(name + Suffix)
	if err == nil {
		ttf, err = unpack(ttf)
	}
	if err != nil {
		return nil, fmt.Errorf("read font %s: %w", name, err)
	}
	return ttf, nil
}

func unpack(packed []byte) ([]byte, error) {
	d, err := decoder()
	if err != nil {
		return nil, err
	}
	return d.DecodeAll(packed, nil)
}
