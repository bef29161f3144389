package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/service-dev/service/proto/peerowner"
)

// wordFile holds the word that people enter to sign up or in, where one is asked for.
const wordFile = "sign-in-word"

// protection is what keeps the other users of this machine out.
type protection struct {
	// listeners refuse other users' connections, where their owners can be learnt.
	listeners []net.Listener
	// word is what sign-up and sign-in ask for where they cannot; it is empty otherwise.
	word string
}

// protect puts the check of who connects in front of the listeners. Whether the system tells is asked once, here: what
// a stranger does later must not take the check away.
func protect(o Options, listeners []net.Listener) (protection, error) {
	probe := o.Probe
	if probe == nil {
		probe = peerowner.Probe
	}
	if err := probe(); err != nil {
		o.Log.Warn("failed to find the owners of connections, signing in asks for a word", "err", err)
		word := newWord()
		return protection{listeners: listeners, word: word}, writeKept(o.DataDir, wordFile, word)
	}
	if err := os.Remove(filepath.Join(o.DataDir, wordFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return protection{}, fmt.Errorf("remove the backend's %s: %w", wordFile, err)
	}
	p := protection{}
	for _, l := range listeners {
		p.listeners = append(p.listeners, peerowner.Guard(l, func(err error) {
			o.Log.Warn("refused a connection", "err", err)
		}))
	}
	return p, nil
}

// mustSignInAgain reports whether browsers may have shown their cookies to somebody else since the last start, which
// that one could use. Browsers send the cookies of localhost to whoever has the port. Where other users' connections
// are refused a cookie is of no use to them; still, a port that had to change was somebody else's.
func mustSignInAgain(before, now int, p protection) bool {
	return before != now || p.word != ""
}

// wordLetters have no vowels, so that no word comes out, and none that are mistaken for another.
const wordLetters = "bcdfghjkmnpqrstvwxz"

// newWord draws a word of ten letters, which are 42 bits.
func newWord() string {
	word := make([]byte, 0, 10)
	var b [1]byte
	for len(word) < cap(word) {
		_, _ = rand.Read(b[:])                                      // never fails (crypto/rand)
		if limit := 256 - 256%len(wordLetters); int(b[0]) < limit { // beyond it some letters would come more often
			word = append(word, wordLetters[int(b[0])%len(wordLetters)])
		}
	}
	return string(word)
}
