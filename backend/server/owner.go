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

// wordFile contains the word that people enter to sign up or in, if one is required.
const wordFile = "sign-in-word"

// protection keeps the other users of this machine out.
type protection struct {
	// listeners refuse other users' connections if the owners of connections can be determined.
	listeners []net.Listener
	// word is required to sign up and in if they cannot be determined; it is empty otherwise.
	word string
}

// protect adds the check of the connections' owners to the listeners. Whether the system reports owners is determined
// once, here, so that another user cannot disable the check later.
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

// mustSignInAgain reports whether browsers may have sent their cookies to another user since the last start, who could
// use them. Browsers send the cookies of localhost to whoever has the port. A cookie is useless to another user if
// their connections are refused; still, if the port had to change, another program has had the old one.
func mustSignInAgain(before, now int, p protection) bool {
	return before != now || p.word != ""
}

// wordLetters contains no vowels, so that no real word results, and no letters that look alike.
const wordLetters = "bcdfghjkmnpqrstvwxz"

// newWord returns ten random letters, which are 42 bits.
func newWord() string {
	word := make([]byte, 0, 10)
	var b [1]byte
	for len(word) < cap(word) {
		_, _ = rand.Read(b[:])                                      // never fails (crypto/rand)
		if limit := 256 - 256%len(wordLetters); int(b[0]) < limit { // beyond the limit some letters would be more likely
			word = append(word, wordLetters[int(b[0])%len(wordLetters)])
		}
	}
	return string(word)
}
