// Package packs embeds the font files of every script. Import it for its effect: the renderer then draws them. A
// file is unpacked when a text first needs it.
package packs

import (
	"embed"

	"github.com/service-dev/service/proto/glasses/render/fonts"
)

// Files are the fonts and their licence.
//
//go:embed *.woff *.txt
var Files embed.FS

func init() { fonts.Use(Files) }
