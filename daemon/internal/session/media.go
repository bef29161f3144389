package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/proto/glasses"
)

// mediaDir holds what the camera and the microphone of a session took: <sha256>.<ext>.
const mediaDir = "media"

// rowMediaDropped tells that the oldest media of a session made room: {sha256, bytes}.
const rowMediaDropped = "media.dropped"

// mediaStore knows the files of a session's media folder, the oldest first.
type mediaStore struct {
	dir   string
	files []mediaFile
	bytes int64
}

type mediaFile struct {
	name string
	size int64
	at   int64
}

func (s *mediaStore) load(dir string) {
	s.dir = dir
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there is none yet
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			s.files = append(s.files, mediaFile{e.Name(), info.Size(), info.ModTime().UnixNano()})
			s.bytes += info.Size()
		}
	}
	slices.SortFunc(s.files, func(a, b mediaFile) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.name, b.name)) })
}

// put keeps a file once and gives those that had to go.
func (s *mediaStore) put(name string, body []byte) (dropped []mediaFile, err error) {
	if slices.ContainsFunc(s.files, func(f mediaFile) bool { return f.name == name }) {
		return nil, nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	// Its name is its hash: a file that a killed daemon wrote by half is found out when it is read.
	if err := os.WriteFile(filepath.Join(s.dir, name), body, 0o600); err != nil {
		return nil, err
	}
	s.files = append(s.files, mediaFile{name: name, size: int64(len(body))})
	s.bytes += int64(len(body))
	for s.bytes > MaxMedia && len(s.files) > 1 {
		oldest := s.files[0]
		_ = os.Remove(filepath.Join(s.dir, oldest.name))
		s.files, s.bytes = s.files[1:], s.bytes-oldest.size
		dropped = append(dropped, oldest)
	}
	return dropped, nil
}

var extensions = map[string]string{"image/jpeg": ".jpg", "image/png": ".png", "video/x-motion-jpeg": ".mjpeg", "audio/wav": ".wav", "audio/L16": ".pcm"}

// keepMedia keeps the bytes of a result by their hash. mu is held.
func (r *room) keepMedia(f glasses.Frame, body []byte) {
	var media glasses.Media
	_ = json.Unmarshal(f.Payload, &media)
	sum := sha256.Sum256(body)
	name := hex.EncodeToString(sum[:]) + extensions[media.MIME]
	dropped, err := r.media.put(name, body)
	if err != nil {
		r.l.often.Warn("keeping media", "session", r.id, "err", err)
		return
	}
	for _, d := range dropped {
		r.note(rowMediaDropped, map[string]any{"sha256": hashOf(d.name), "bytes": d.size})
	}
}

func hashOf(name string) string { return name[:min(len(name), sha256.Size*2)] }

var hashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Media gives the bytes of media that a local session's glasses took, and the name of their file. The error is a
// *backend.Problem: not_found for media that it does not have, or no longer.
func (m *Manager) Media(id, sha string) (name string, body []byte, err error) {
	r := m.local.open(id)
	if r == nil || !hashPattern.MatchString(sha) {
		return "", nil, notFound()
	}
	dir := filepath.Join(r.folder(), mediaDir)
	matches, err := fs.Glob(os.DirFS(dir), sha+"*")
	if err != nil || len(matches) == 0 {
		return "", nil, noMedia()
	}
	body, err = statefile.Read(filepath.Join(dir, matches[0]), MaxMedia)
	if err != nil {
		return "", nil, stateProblem("reading media", err)
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != sha {
		return "", nil, noMedia()
	}
	return matches[0], body, nil
}
