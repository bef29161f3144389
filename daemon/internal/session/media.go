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
	"github.com/service-dev/service/glasses"
)

// mediaDir is the directory for media recorded by a session's camera and microphone, as
// <sha256>.<ext>.
const mediaDir = "media"

// rowMediaDropped is the type of a row about media that was deleted to stay within MaxMedia: {sha256, bytes}.
const rowMediaDropped = "media.dropped"

// mediaStore is a session's media directory. Its files are ordered by age, oldest first.
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
		return // the directory does not exist yet
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			s.files = append(s.files, mediaFile{e.Name(), info.Size(), info.ModTime().UnixNano()})
			s.bytes += info.Size()
		}
	}
	slices.SortFunc(s.files, func(a, b mediaFile) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.name, b.name))
	})
}

// put saves a file unless it exists. It returns the files that it deleted to stay within MaxMedia.
func (s *mediaStore) put(name string, body []byte) (dropped []mediaFile, err error) {
	if slices.ContainsFunc(s.files, func(f mediaFile) bool { return f.name == name }) {
		return nil, nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	// The name is the hash of the content, so readers detect a file that a killed daemon left incomplete.
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

var extensions = map[string]string{
	"image/jpeg": ".jpg", "image/png": ".png", "video/x-motion-jpeg": ".mjpeg", "audio/wav": ".wav",
	"audio/L16": ".pcm",
}

// saveMedia saves the bytes of a result under their hash. The caller holds Mu.
func (s *localSession) saveMedia(f glasses.Frame, body []byte) {
	var media glasses.Media
	_ = json.Unmarshal(f.Payload, &media)
	sum := sha256.Sum256(body)
	name := hex.EncodeToString(sum[:]) + extensions[media.MIME]
	dropped, err := s.media.put(name, body)
	if err != nil {
		s.owner.often.Warn("failed to save media", "session", s.id, "err", err)
		return
	}
	for _, d := range dropped {
		s.logService(rowMediaDropped, map[string]any{"sha256": hashOf(d.name), "bytes": d.size})
	}
}

func hashOf(name string) string { return name[:min(len(name), sha256.Size*2)] }

var hashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Media returns media recorded by the glasses of a local session, and the name of the file. It returns a *problem.Error
// on failure, with the code not_found if the media does not exist or was deleted.
func (m *Manager) Media(id, sha string) (name string, body []byte, err error) {
	s := m.local.find(id)
	if s == nil || !hashPattern.MatchString(sha) {
		return "", nil, notFound()
	}
	dir := filepath.Join(s.folder(), mediaDir)
	matches, err := fs.Glob(os.DirFS(dir), sha+"*")
	if err != nil || len(matches) == 0 {
		return "", nil, noMedia()
	}
	body, err = statefile.Read(filepath.Join(dir, matches[0]), MaxMedia)
	if err != nil {
		return "", nil, stateProblem("read media", err)
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != sha {
		return "", nil, noMedia()
	}
	return matches[0], body, nil
}
