package localsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media"
)

// Limits on a directory of fixtures.
const (
	maxFile  = 16 << 20 // bytes per file
	maxFiles = 1000     // pictures per folder
	maxLines = 1000     // lines of transcripts.json
	maxAt    = 24 * 3600_000
	maxKept  = 32 << 20 // bytes of scaled pictures kept in memory
)

// fixtures is the input of the camera and microphone of one session: the files in a directory, or generated pictures
// and sound. Pictures are read when needed, so the user can replace them while the session runs. Symbolic links that
// lead outside the directory are refused.
type fixtures struct {
	root   *os.Root // nil without a folder
	photos []string
	taken  int // number of photos taken so far
	frames []string
	clip   [][]byte
	sound  *media.Sound
	script []line

	cache map[string]cachedPicture
	kept  int // size of the pictures in made, in bytes
}

// cachedPicture is a picture scaled to one width.
type cachedPicture struct {
	of      string // version of the file, to detect changes
	picture []byte
}

// line is an entry of transcripts.json.
type line struct {
	AtMs     int64  `json:"atMs"` // time since transcription.start
	Text     string `json:"text"`
	Final    bool   `json:"final"`
	Language string `json:"language"`
}

// openFixtures reads a directory. If dir is empty, pictures and sound are generated.
func openFixtures(dir string) (*fixtures, error) {
	f := &fixtures{cache: map[string]cachedPicture{}}
	if dir == "" {
		return f, nil
	}
	var err error
	if f.root, err = os.OpenRoot(dir); err != nil {
		return nil, fmt.Errorf("open the folder of fixtures: %w", err)
	}
	if err := f.load(); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *fixtures) close() {
	if f.root != nil {
		_ = f.root.Close()
	}
}

// load finds the files. Pictures may have any name. Preferred are photo.* and the directory photos for photos, the
// directory frames and clip.mjpeg for moving pictures, and audio.wav for sound.
func (f *fixtures) load() error {
	pictures, err := f.list(".", ".jpg", ".jpeg", ".png")
	if err != nil {
		return err
	}
	if f.photos, err = f.list("photos", ".jpg", ".jpeg", ".png"); err != nil {
		return err
	}
	if i := slices.IndexFunc(pictures, isPhoto); i >= 0 {
		f.photos = pictures[i : i+1]
	} else if len(f.photos) == 0 {
		f.photos = pictures
	}
	if f.frames, err = f.list("frames", ".jpg", ".jpeg", ".png"); err != nil {
		return err
	}
	if data, err := f.read("clip.mjpeg"); err == nil {
		if f.clip = media.SplitJPEGs(data, media.MaxFrames); len(f.clip) == 0 {
			return errors.New("fixture clip.mjpeg contains no JPEG")
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(f.frames) == 0 && len(f.clip) == 0 && len(pictures) > 1 {
		f.frames = pictures
	}
	if err := f.loadSound(); err != nil {
		return err
	}
	data, err := f.read("transcripts.json")
	if err == nil {
		f.script, err = parseScript(data)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func isPhoto(name string) bool {
	return name == "photo.png" || name == "photo.jpeg" || name == "photo.jpg"
}

func (f *fixtures) loadSound() error {
	sounds, err := f.list(".", ".wav")
	if err != nil || len(sounds) == 0 {
		return err
	}
	name := sounds[0]
	if slices.Contains(sounds, "audio.wav") {
		name = "audio.wav"
	} else if len(sounds) > 1 {
		return fmt.Errorf("the fixtures contain %d sounds: rename the one for the microphone to audio.wav", len(sounds))
	}
	data, err := f.read(name)
	if err != nil {
		return err
	}
	if f.sound, err = media.ParseWAV(data); err != nil {
		return fmt.Errorf("fixture %s: %w", name, err)
	}
	return nil
}

// list returns the files in a directory that have one of the extensions, ordered by name.
func (f *fixtures) list(dir string, extensions ...string) ([]string, error) {
	d, err := f.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open fixtures in %s: %w", dir, err)
	}
	defer d.Close()
	entries, err := d.ReadDir(maxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("list fixtures in %s: %w", dir, err)
	}
	if len(entries) > maxFiles {
		return nil, fmt.Errorf("%s contains more than %d files", dir, maxFiles)
	}
	var names []string
	for _, e := range entries {
		if slices.Contains(extensions, strings.ToLower(path.Ext(e.Name()))) {
			names = append(names, path.Join(dir, e.Name()))
		}
	}
	slices.Sort(names)
	return names, nil
}

// read returns the content of a file, which may have at most maxFile bytes.
func (f *fixtures) read(name string) ([]byte, error) {
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read fixture %s: %w", name, err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("fixture %s is not a regular file of at most %d bytes", name, maxFile)
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read fixture %s: %w", name, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return nil, fmt.Errorf("read fixture %s: %w", name, err)
	}
	return data, nil
}

// parseScript parses transcripts.json and returns the lines ordered by time.
func parseScript(data []byte) ([]line, error) {
	var lines []line
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&lines); err != nil {
		return nil, errors.New("fixture transcripts.json is not a list of {atMs,text,final,language}")
	}
	if len(lines) > maxLines {
		return nil, fmt.Errorf("fixture transcripts.json has more than %d lines", maxLines)
	}
	for i, l := range lines {
		if n := utf8.RuneCountInString(l.Text); n == 0 || n > glasses.MaxSay || l.AtMs < 0 || l.AtMs > maxAt {
			return nil, fmt.Errorf("fixture transcripts.json, line %d: needs atMs from 0 to %d and 1 to %d characters", i+1,
				maxAt, glasses.MaxSay)
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(min(max(a.AtMs-b.AtMs, -1), 1)) })
	return lines, nil
}

// linesFrom returns the script in session time, for a transcription that starts now.
func (f *fixtures) linesFrom(now int64) []line {
	lines := slices.Clone(f.script)
	for i := range lines {
		lines[i].AtMs += now
	}
	return lines
}
