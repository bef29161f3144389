package fonts

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
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
	// Shaper works in font units, so that its results are integers that apply to every size.
	Shaper *harfbuzz.Font
	// Outlines is the same font, for drawing.
	Outlines *sfnt.Font
	// Upem is the number of font units in an em.
	Upem int
	// Primary is set for the Go fonts, which are used for every character that they contain.
	Primary bool
	// Added describes an added font; nil for the service's fonts.
	Added *Added

	nominal *font.Face
	os2     []byte // table OS/2 of an added font
}

// Has reports whether the font has a glyph for a character.
func (f *Face) Has(r rune) bool {
	_, ok := f.nominal.NominalGlyph(r)
	return ok
}

func parse(name string, ttf []byte) (*Face, error) {
	shaped, err := withoutOutlines(ttf)
	if err != nil {
		return nil, fmt.Errorf("parse font %s: %w", name, err)
	}
	nominal, err := font.ParseTTF(bytes.NewReader(shaped))
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

// Primary returns the font for Latin, Greek and Cyrillic.
func Primary(isBold bool) *Face {
	if isBold {
		return bold()
	}
	return regular()
}

// faces contains the font files of this program. They are parsed on first use.
var faces struct {
	mu         sync.Mutex
	read       func(name string) ([]byte, error) // nil in a program that receives files through Add
	parsed     map[string]*Face                  // nil for a file that cannot be loaded
	wanted     map[string]bool
	generation int
}

// Use sets the function that reads a TrueType file by name. Package packs calls it.
func Use(read func(name string) ([]byte, error)) {
	faces.mu.Lock()
	defer faces.mu.Unlock()
	faces.read = read
	faces.generation++
}

// Generation returns a number that changes whenever the set of available files changes.
func Generation() int {
	faces.mu.Lock()
	defer faces.mu.Unlock()
	return faces.generation
}

// Wanted returns the sorted names of font files that texts need and this program lacks. Pass each file to Add. A name
// is a file name in packs, without the suffix.
func Wanted() []string {
	faces.mu.Lock()
	defer faces.mu.Unlock()
	return slices.Sorted(maps.Keys(faces.wanted))
}

// Add provides a TrueType file. A nil ttf means that the file cannot be loaded, so that other fonts are used instead.
func Add(name string, ttf []byte) error {
	faces.mu.Lock()
	defer faces.mu.Unlock()
	faces.generation++
	return add(name, ttf)
}

// add parses a font file. A file that cannot be parsed is treated like one that cannot be loaded. The caller must hold
// the lock.
func add(name string, ttf []byte) (err error) {
	if faces.parsed == nil {
		faces.parsed = map[string]*Face{}
	}
	delete(faces.wanted, name)
	faces.parsed[name] = nil
	if ttf != nil {
		faces.parsed[name], err = parse(name, ttf)
	}
	return err
}

// load returns the parsed font file, or nil if it cannot be loaded. ok is false if Add has not provided it yet.
func load(name string) (f *Face, ok bool) {
	faces.mu.Lock()
	defer faces.mu.Unlock()
	if f, ok := faces.parsed[name]; ok {
		return f, true
	}
	if faces.read == nil {
		if faces.wanted == nil {
			faces.wanted = map[string]bool{}
		}
		faces.wanted[name] = true
		return nil, false
	}
	ttf, _ := faces.read(name) // nil if the program was built without it
	_ = add(name, ttf)         // ignore the error; a test parses all files
	return faces.parsed[name], true
}

// Fallbacks yields the fonts that may contain a character that the primary font lacks, the best first. It loads each
// font when the iteration reaches it, and ends at a font that Add has not provided yet. asEmoji prefers emoji to
// symbols. For a script without a bold font it yields the regular one.
func Fallbacks(r rune, script language.Script, region Region, isBold, asEmoji bool) func(yield func(*Face) bool) {
	return func(yield func(*Face) bool) {
		for _, p := range packsOf(r, script, region, asEmoji) {
			name := p.regular
			if isBold && p.bold != "" {
				name = p.bold
			}
			if f, ok := load(name); !ok || f != nil && !yield(f) {
				return
			}
		}
	}
}
