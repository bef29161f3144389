// Package codes stores the device codes issued to this install. completeAuthLink accepts only these codes, also after a
// restart of the daemon. run/codes.json contains keyed hashes of the codes, never the codes. The address of a code's
// approval page can be decrypted only with the code.
package codes

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/internal/secretscan"
)

// FileName is the file's name inside the run directory.
const FileName = "codes.json"

// MaxWindow is the maximum time that a code is polled, even if the backend reports a longer validity.
const MaxWindow = 24 * time.Hour

// Limits of the file. An entry is kept for keepAfter beyond the expiry of its code, so that a late call can report an
// expired code instead of an unknown one.
const (
	maxEntries = 64
	maxFile    = 2 << 20
	maxArgs    = 16 << 10
	keepAfter  = 15 * time.Minute
	keyBytes   = 32
)

// Call is the tool call that needed a link. Its caller's environment is never stored.
type Call struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args,omitempty"`
	Cwd  string          `json:"cwd,omitempty"`
}

// Issued describes one code.
type Issued struct {
	// Backend is the backend that issued the code: a URL or "embedded:", with or without an ID.
	Backend string
	Expires time.Time
	// Page is the page on which the user approves the code.
	Page string
	// Opened reports whether the page was opened in a browser, and Aborted whether an aborted wait was recorded. Only
	// Update changes them.
	Opened, Aborted bool
	// Call is nil if the call is unknown, is too large, or has arguments that may contain a credential.
	Call *Call
}

// entry is the stored form of an Issued.
type entry struct {
	Hash    string `json:"hash"`
	Backend string `json:"backend"`
	Expires int64  `json:"expires"` // Unix seconds
	// Page is encrypted with a key derived from the code, because it contains the user code.
	Page    []byte `json:"page,omitempty"`
	Opened  bool   `json:"opened,omitempty"`
	Aborted bool   `json:"aborted,omitempty"`
	Call    *Call  `json:"call,omitempty"`
}

// file is the content of codes.json. The key is random and stored only here: without the file, the hashes reveal
// nothing.
type file struct {
	Key   []byte  `json:"key"`
	Codes []entry `json:"codes"` // oldest first
}

// Store is the only writer of codes.json. It is safe for concurrent use.
type Store struct {
	path string
	now  func() time.Time
	log  *slog.Logger

	mu     sync.Mutex
	loaded bool
	file   file
}

// New returns the store of a run directory. It reads the file on first use.
func New(runDir string, now func() time.Time, log *slog.Logger) *Store {
	return &Store{path: filepath.Join(runDir, FileName), now: now, log: log}
}

// Find returns the stored data of a code. ok is false if the code was not issued here or has been removed.
func (s *Store) Find(deviceCode string) (issued Issued, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loadOnce()
	i := s.index(deviceCode)
	if i < 0 || s.isOver(s.file.Codes[i]) {
		return Issued{}, false, nil
	}
	return s.issued(s.file.Codes[i], deviceCode), true, nil
}

// Put stores a code or replaces its data. If the store is full, Put removes the oldest code.
func (s *Store) Put(deviceCode string, issued Issued) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loadOnce()
	if err := s.ensureKey(); err != nil {
		return err
	}
	e := s.entry(issued, deviceCode)
	if i := s.index(deviceCode); i >= 0 {
		e.Opened, e.Aborted = s.file.Codes[i].Opened, s.file.Codes[i].Aborted
		s.file.Codes = slices.Delete(s.file.Codes, i, i+1)
	}
	s.file.Codes = append(slices.DeleteFunc(s.file.Codes, s.isOver), e)
	if n := len(s.file.Codes); n > maxEntries {
		s.file.Codes = slices.Delete(s.file.Codes, 0, n-maxEntries)
	}
	return s.save()
}

// Update changes the data of a code, if it is stored.
func (s *Store) Update(deviceCode string, change func(*Issued)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loadOnce()
	i := s.index(deviceCode)
	if i < 0 {
		return nil
	}
	issued := s.issued(s.file.Codes[i], deviceCode)
	change(&issued)
	s.file.Codes[i] = s.entry(issued, deviceCode)
	return s.save()
}

// Remove removes a code.
func (s *Store) Remove(deviceCode string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loadOnce()
	i := s.index(deviceCode)
	if i < 0 {
		return nil
	}
	s.file.Codes = slices.Delete(s.file.Codes, i, i+1)
	return s.save()
}

func (s *Store) issued(e entry, deviceCode string) Issued {
	return Issued{Backend: e.Backend, Expires: time.Unix(e.Expires, 0), Page: s.decrypt(e.Page, deviceCode),
		Opened: e.Opened, Aborted: e.Aborted, Call: e.Call}
}

func (s *Store) entry(i Issued, deviceCode string) entry {
	return entry{Hash: s.hash(deviceCode), Backend: i.Backend, Expires: i.Expires.Unix(),
		Page: s.encrypt(i.Page, deviceCode), Opened: i.Opened, Aborted: i.Aborted, Call: storableCall(i.Call)}
}

// storableCall returns c, or nil if c must not be stored because it is too long or contains a secret.
func storableCall(c *Call) *Call {
	if c == nil || len(c.Args) > maxArgs || secretscan.Contains(string(c.Args)) {
		return nil
	}
	return c
}

// isOver reports whether a code can be removed. Setting the clock back does not extend a code's lifetime.
func (s *Store) isOver(e entry) bool {
	left := time.Unix(e.Expires, 0).Sub(s.now())
	return left < -keepAfter || left > MaxWindow+time.Minute
}

func (s *Store) index(deviceCode string) int {
	if len(s.file.Key) != keyBytes {
		return -1
	}
	hash := []byte(s.hash(deviceCode))
	return slices.IndexFunc(s.file.Codes, func(e entry) bool { return hmac.Equal([]byte(e.Hash), hash) })
}

func (s *Store) hash(deviceCode string) string { return hex.EncodeToString(s.mac(deviceCode)) }

func (s *Store) mac(text string) []byte {
	mac := hmac.New(sha256.New, s.file.Key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// cipherOf returns a cipher whose key is derived from the file's key and the code. It cannot fail, because the key has
// the right length.
func (s *Store) cipherOf(deviceCode string) cipher.AEAD {
	block, _ := aes.NewCipher(s.mac("page " + deviceCode))
	aead, _ := cipher.NewGCMWithRandomNonce(block)
	return aead
}

func (s *Store) encrypt(page, deviceCode string) []byte {
	if page == "" {
		return nil
	}
	return s.cipherOf(deviceCode).Seal(nil, nil, []byte(page), nil)
}

// decrypt returns the page's address, or "" if sealed is empty or was modified.
func (s *Store) decrypt(sealed []byte, deviceCode string) string {
	page, err := s.cipherOf(deviceCode).Open(nil, nil, sealed, nil)
	if err != nil {
		return ""
	}
	return string(page)
}

func (s *Store) ensureKey() error {
	if len(s.file.Key) == keyBytes {
		return nil
	}
	key := make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	s.file = file{Key: key}
	return nil
}

// loadOnce reads the file once. It ignores an unusable file, which the next write replaces. Its codes are then unknown,
// which is safe.
func (s *Store) loadOnce() {
	if s.loaded {
		return
	}
	s.loaded = true
	data, before, err := statefile.ReadPrivate(s.path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var f file
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil && len(f.Key) != keyBytes {
		err = errors.New("it has no key")
	}
	if err == nil && before != 0 {
		err = errors.New("other users could read it")
	}
	if err != nil {
		s.log.Warn("failed to read the issued device codes; they are lost", "err", err)
		return
	}
	s.file = f
}

func (s *Store) save() error {
	data, err := json.Marshal(s.file)
	if err != nil {
		return err
	}
	return statefile.Write(s.path, append(data, '\n'))
}
