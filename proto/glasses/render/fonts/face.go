package fonts

import (
	"bytes"
	"fmt"
	"io/fs"
	"sync"

	"github.com/go-text/typesetting/font"
	"github.com/go-text/typesetting/harfbuzz"
	"github.com/go-text/typesetting/language"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
)

// Face is a parsed font file. Shaper is not safe for concurrent use.
type Face struct {
	Name string
	// Shaper works in font units, so that its results are integers and hold for every size.
	Shaper *harfbuzz.Font
	// Outlines is the same file for drawing.
	Outlines *sfnt.Font
	// Upem is the number of font units in an em.
	Upem int
	// Primary is set for the Go fonts, which are used wherever they have a character.
	Primary bool

	nominal *font.Face
}

// Has reports whether the font has a glyph for a character.
func (f *Face) Has(r rune) bool {
	_, ok := f.nominal.NominalGlyph(r)
	return ok
}

func parse(name string, ttf []byte) (*Face, error) {
	nominal, err := font.ParseTTF(bytes.NewReader(ttf))
	if err != nil {
		return nil, fmt.Errorf("parse font %s: %w", name, err)
	}
	outlines, err := sfnt.Parse(ttf)
	if err != nil {
		return nil, fmt.Errorf("parse font %s: %w", name, err)
	}
	return &Face{Name: name, Shaper: harfbuzz.NewFont(nominal), Outlines: outlines, Upem: int(nominal.Upem()),
		nominal: nominal}, nil
}

var (
	regular = sync.OnceValue(func() *Face { return primary("Go Regular", goregular.TTF) })
	bold    = sync.OnceValue(func() *Face { return primary("Go Bold", gobold.TTF) })
)

func primary(name string, ttf []byte) *Face {
	f, err := parse(name, ttf)
	if err != nil {
		panic("fonts: " + err.Error())
	}
	f.Primary = true
	return f
}

// Primary returns the font of Latin, Greek and Cyrillic.
func Primary(isBold bool) *Face {
	if isBold {
		return bold()
	}
	return regular()
}

// faces caches the parsed files; a file that is not there yet is looked for again.
var faces struct {
	mu         sync.Mutex
	files      fs.FS
	parsed     map[string]*Face
	generation int
}

// Use sets where the font files are found. Packs calls it.
func Use(files fs.FS) {
	faces.mu.Lock()
	defer faces.mu.Unlock()
	faces.files = files
	faces.generation++
}

// Generation changes when other files become available.
func Generation() int {
	faces.mu.Lock()
	defer faces.mu.Unlock()
	return faces.generation
}

// load returns a font file, parsed; nil if this program does not have it.
func load(name string) *Face {
	faces.mu.Lock()
	defer faces.mu.Unlock()
	if f := faces.parsed[name]; f != nil || faces.files == nil {
		return f
	}
	data, err := fs.ReadFile(faces.files, name+".woff")
	if err != nil {
		return nil
	}
	ttf, err := unpack(data)
	if err != nil {
		return nil
	}
	f, err := parse(name, ttf)
	if err != nil {
		return nil
	}
	if faces.parsed == nil {
		faces.parsed = map[string]*Face{}
	}
	faces.parsed[name] = f
	return f
}

// Fallbacks yields the fonts that may have a character that the primary font lacks, the best first. Each is loaded when
// it is asked for. asEmoji prefers the emoji to the symbol. Without a bold font of a script its regular one is used.
func Fallbacks(r rune, script language.Script, region Region, isBold, asEmoji bool) func(yield func(*Face) bool) {
	return func(yield func(*Face) bool) {
		for _, p := range packsOf(r, script, region, asEmoji) {
			name := p.regular
			if isBold && p.bold != "" {
				name = p.bold
			}
			if f := load(name); f != nil && !yield(f) {
				return
			}
		}
	}
}
