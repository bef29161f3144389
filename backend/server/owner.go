package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/service-dev/service/internal/loopback"
)

// wordFile contains the word that users enter to sign up or sign in, if one is required.
const wordFile = "sign-in-word"

// protection prevents other users of this machine from using the backend.
type protection struct {
	// listeners refuse connections of other users, if the owners of connections can be determined.
	listeners []net.Listener
	// word is required to sign up and sign in if the owners cannot be determined. Otherwise it is empty.
	word string
}

// protect makes the listeners check the owners of connections. It determines only once whether the system reports
// owners, so that another user cannot disable the check later.
func protect(o Options, listeners []net.Listener) (protection, error) {
	probe := o.Probe
	if probe == nil {
		probe = loopback.ProbePeers
	}
	if err := probe(); err != nil {
		o.Log.Warn("failed to determine who owns connections; sign-up and sign-in now require the sign-in word", "err", err)
		word := newWord()
		return protection{listeners: listeners, word: word}, writeKept(o.DataDir, wordFile, word)
	}
	if err := os.Remove(filepath.Join(o.DataDir, wordFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return protection{}, fmt.Errorf("remove the backend's %s: %w", wordFile, err)
	}
	p := protection{}
	for _, l := range listeners {
		p.listeners = append(p.listeners, loopback.Guard(l, func(err error) {
			o.Log.Warn("refused a connection", "err", err)
		}))
	}
	return p, nil
}

// mustSignInAgain reports whether browsers may have sent their cookies to another user since the last start. Browsers
// send the cookies of localhost to any program that uses the port. A stolen cookie is useless as long as the backend
// refuses connections of other users. If the port had to change, another program has used the old port. If no earlier
// port is known, no cookie can have been sent to it.
func mustSignInAgain(before, now int, p protection) bool {
	return before != 0 && before != now || p.word != ""
}

// wordLetters contains no vowels, to avoid real words, and no letters that look alike.
const wordLetters = "bcdfghjkmnpqrstvwxz"

// newWord returns ten random letters, which have 42 bits of entropy.
func newWord() string {
	word := make([]byte, 0, 10)
	var b [1]byte
	for len(word) < cap(word) {
		_, _ = rand.Read(b[:])                                      // never fails (crypto/rand)
		if limit := 256 - 256%len(wordLetters); int(b[0]) < limit { // larger values would favour some letters
			word = append(word, wordLetters[int(b[0])%len(wordLetters)])
		}
	}
	return string(word)
}
