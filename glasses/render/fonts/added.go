package fonts

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// Added is a font file that the user added to this machine. It is used for characters that the service's fonts lack.
type Added struct {
	// Name is the name shown to users. SHA256 identifies the file, in lower-case hex.
	Name, SHA256 string
	// Bold is set for fonts that are tried first for bold text. Other fonts are tried first for other text.
	Bold bool
	// File is its absolute path.
	File string
}

// addedFont is an added font, parsed when a text first needs it.
type addedFont struct {
	Added
	face *Face
	read bool
}

// added lists the added fonts, the oldest first. The lock of faces guards it.
var added struct {
	list    []*addedFont
	ignored func(Added, error)
}

// SetAdded replaces the added fonts. It calls ignored for each font that it does not use because the file cannot be
// read or has another hash, or because the font failed while a text was drawn. ignored is called with a lock held, so
// it must not draw.
func SetAdded(list []Added, ignored func(Added, error)) {
	faces.mu.Lock()
	defer faces.mu.Unlock()
	faces.generation++
	before := added.list
	added.list, added.ignored = nil, ignored
	for _, a := range list {
		f := &addedFont{Added: a}
		for _, b := range before { // keep parsed fonts, and try failed ones again
			if b.Added == a && b.face != nil {
				f = b
			}
		}
		added.list = append(added.list, f)
	}
}

// AddedFaces yields the added fonts. Fonts of the requested weight come first, and fonts of one weight are ordered by
// age, the oldest first.
func AddedFaces(isBold bool) iter.Seq[*Face] {
	return func(yield func(*Face) bool) {
		for _, weight := range []bool{isBold, !isBold} {
			for _, f := range addedFaces(weight) {
				if face := f.load(); face != nil && !yield(face) {
					return
				}
			}
		}
	}
}

func addedFaces(isBold bool) []*addedFont {
	faces.mu.Lock()
	defer faces.mu.Unlock()
	var list []*addedFont
	for _, f := range added.list {
		if f.Bold == isBold {
			list = append(list, f)
		}
	}
	return list
}

// load returns the parsed font, or nil if the font is ignored.
func (f *addedFont) load() *Face {
	faces.mu.Lock()
	defer faces.mu.Unlock()
	if f.read {
		return f.face
	}
	f.read = true
	face, err := f.open()
	if err != nil {
		ignore(f.Added, err)
		return nil
	}
	face.Added = &f.Added
	f.face = face
	return face
}

func (f *addedFont) open() (*Face, error) {
	data, err := ReadFile(f.File)
	if err != nil {
		return nil, err
	}
	if Hash(data) != f.SHA256 {
		return nil, errors.New("its content has changed")
	}
	return parseAdded(data)
}

// ignore reports a font that will not be used. The caller must hold the lock.
func ignore(a Added, err error) {
	if added.ignored != nil {
		added.ignored(a, err)
	}
}

// Drop stops using an added font that failed while a text was drawn. Font parsers may panic even on files that they
// accepted. Texts are then drawn with the other fonts.
func Drop(f *Face, cause any) {
	faces.mu.Lock()
	defer faces.mu.Unlock()
	for _, a := range added.list {
		if a.face == f && f != nil {
			a.face = nil
			faces.generation++
			ignore(a.Added, fmt.Errorf("drawing with it failed: %v", cause))
		}
	}
}

// Hash returns the SHA-256 of a font file in lower-case hex.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ReadFile reads a font file. It reads at most MaxFile+1 bytes, so that Check refuses a larger file.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // opening a pipe might block
		return nil, fmt.Errorf("%s must be a regular file", path)
	}
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, MaxFile+1))
	}
	return nil, err
}

// HasAdded reports whether the added font with this hash is in use.
func HasAdded(sha256 string) bool {
	faces.mu.Lock()
	var font *addedFont
	for _, f := range added.list {
		if f.SHA256 == sha256 {
			font = f
		}
	}
	faces.mu.Unlock()
	return font != nil && font.load() != nil
}
