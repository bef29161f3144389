package osservice

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/internal/fileowner"
	"github.com/service-dev/service/internal/problem"
)

// maxFile is the maximum size of one of the service's files, in bytes.
const maxFile = 64 << 10

// file is a file of the service.
type file struct{ path, content string }

// files are the files of the service. sign is contained in each file that any version of install wrote.
type files struct {
	sign string
	list []file
}

// read returns the contents of the existing files, by path. It returns an error if install did not write one of them.
func (f files) read() (map[string]string, error) {
	contents := map[string]string{}
	for _, one := range f.list {
		data, err := readOwn(one.path, f.sign)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		contents[one.path] = string(data)
	}
	return contents, nil
}

// write updates the files and returns their previous contents, by path. It changes no file if one cannot be written or
// was not written by install.
func (f files) write() (change string, before map[string]string, err error) {
	if before, err = f.read(); err != nil {
		return "", nil, err
	}
	if change, err = f.update(before); err != nil {
		return "", nil, errors.Join(err, f.restore(before))
	}
	return change, before, nil
}

func (f files) update(before map[string]string) (change string, err error) {
	change = Unchanged
	for _, one := range f.list {
		switch old, ok := before[one.path]; {
		case ok && old == one.content:
			continue
		case ok:
			change = Updated
		case change == Unchanged:
			change = Created
		}
		dir := filepath.Dir(one.path)
		var foreign *fileowner.Error
		if err := fileowner.CheckNew(dir); errors.As(err, &foreign) {
			return "", problem.New(problem.CodeServiceFile, foreign.Reason, foreign.Fix)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", problem.New(problem.CodeServiceFile, "create "+dir+": "+err.Error(), "Correct the directory.")
		}
		if err := statefile.Write(one.path, []byte(one.content)); err != nil {
			return "", problem.New(problem.CodeServiceFile, err.Error(), "Correct the directory "+dir+".")
		}
	}
	return change, nil
}

// update describes what an install changed.
type update struct {
	change string            // Created, Updated or Unchanged
	before map[string]string // the previous contents of the files, by path
	ran    bool              // the service was running
	enable bool              // the update removed the setting that starts the service at login
}

// writeOver is like write, for an install that may replace a running service. It also records whether the service was
// running, according to status.
func (f files) writeOver(ctx context.Context, status func(context.Context) (Report, error)) (update, error) {
	was, err := status(ctx)
	if err != nil {
		return update{}, err
	}
	change, before, err := f.write()
	return update{change: change, before: before, ran: was.runs()}, err
}

// restore restores the contents that files had before an update, and removes files that did not exist.
func (f files) restore(before map[string]string) error {
	var failed error
	for _, one := range f.list {
		var err error
		if old, ok := before[one.path]; ok {
			err = statefile.Write(one.path, []byte(old))
		} else {
			_, err = statefile.Remove(one.path)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// remove deletes paths and returns the paths that existed.
func remove(paths ...string) (removed []string, err error) {
	removed = []string{}
	for _, path := range paths {
		existed, err := statefile.Remove(path)
		if err != nil {
			return nil, problem.New(problem.CodeServiceFile, err.Error(), "Remove it by hand.")
		}
		if existed {
			removed = append(removed, path)
		}
	}
	return removed, nil
}

// readOwn reads a file that contains sign because install wrote it. It returns fs.ErrNotExist if the file does not
// exist. It refuses any other file, because that file belongs to the user.
func readOwn(path, sign string) ([]byte, error) {
	hint := "Move " + path + " away, then try again."
	data, err := statefile.Read(path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case errors.Is(err, statefile.ErrSymlink) && sign == unitSign: // systemd's masks are links
		hint = "Move " + path + " away, or run `systemctl --user unmask " + filepath.Base(path) + "` if it is a mask."
		fallthrough
	case err != nil:
		return nil, problem.New(problem.CodeServiceFile, err.Error(), hint)
	case !bytes.Contains(data, []byte(sign)):
		return nil, problem.New(problem.CodeServiceFile, path+" was not written by `servicectl service install`",
			"Move it away, then try again.")
	}
	return data, nil
}

// isRegular reports whether path is a regular file.
func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
