package osservice

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/internal/problem"
)

// ensureUser returns the service's user. It creates the user if the system has a standard command for that. On Windows
// it returns nil, because each service has its own account there.
func ensureUser(ctx context.Context, s spec) (u *user.User, created []string, err error) {
	if runtime.GOOS == "windows" {
		return nil, nil, nil
	}
	if u, err = lookup(s.User); u != nil || err != nil {
		return u, nil, err
	}
	commands, err := userCommands(s, runtime.GOOS, exec.LookPath)
	if err != nil {
		return nil, nil, err
	}
	for _, args := range commands {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return nil, nil, problem.New(problem.CodeServiceUser, args[0]+": "+err.Error()+": "+strings.TrimSpace(string(out)),
				"Create the system user "+s.User+", then try again.")
		}
	}
	u, err = user.Lookup(s.User)
	return u, []string{"user " + s.User}, err
}

// userCommands returns the commands that create the service's user.
func userCommands(s spec, goos string, look func(string) (string, error)) ([][]string, error) {
	if goos == "darwin" {
		return nil, problem.New(problem.CodeServiceUser,
			"there is no user "+s.User+", and macOS has no command that chooses a free number for one",
			"Choose a free number from 200 to 400 (`dscl . -list /Users UniqueID`), run `sudo sysadminctl -addUser "+s.User+
				" -roleAccount -UID NUMBER`, then try again; or name a user with --user.")
	}
	if _, err := look("useradd"); err == nil {
		return [][]string{{"useradd", "--system", "--user-group", "--no-create-home", "--home-dir", s.Data,
			"--shell", "/usr/sbin/nologin", s.User}}, nil
	}
	if _, err := look("adduser"); err == nil { // BusyBox has adduser
		return [][]string{{"addgroup", "-S", s.User},
			{"adduser", "-S", "-D", "-H", "-h", s.Data, "-s", "/sbin/nologin", "-G", s.User, s.User}}, nil
	}
	return nil, problem.New(problem.CodeServiceUser,
		"there is no user "+s.User+", and neither useradd nor adduser is installed",
		"Create a system user with that name and without a login shell, then try again; or choose another with --user.")
}

// files returns the path of the settings file and the paths of the key files next to it.
func (s spec) files() []string {
	dir := filepath.Dir(s.Settings)
	return []string{s.Settings, filepath.Join(dir, "hmac.key"), filepath.Join(dir, "credentials.key")}
}

// ensureFiles writes a settings file with new keys and creates a data directory, unless the settings file exists. It
// writes the settings file last, so that an interrupted install is repeated. It keeps existing keys.
func ensureFiles(s spec, u *user.User) (created []string, err error) {
	files := s.files()
	if _, err := os.Stat(s.Settings); !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(s.Settings), 0o755); err != nil {
		return nil, err
	}
	if created, err = ensureData(s.Data, u); err != nil {
		return nil, err
	}
	for _, path := range files[1:] {
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		if err := write(path, []byte(hex.EncodeToString(key)+"\n"), u, 0o400); err != nil {
			return nil, err
		}
		created = append(created, path)
	}
	text := "# Settings of service-backend, explained on the page \"operating\" of its documentation.\n" +
		"# After a change: service-backend service restart\n" +
		"listen: localhost:8080\ndata_dir: " + s.Data + "\n" +
		"hmac_key_file: " + files[1] + "\ncredentials_key_file: " + files[2] + "\n"
	if err := write(s.Settings, []byte(text), u, 0o600); err != nil {
		return nil, err
	}
	return append(created, s.Settings), nil
}

// ensureData creates the data directory if it does not exist.
func ensureData(dir string, u *user.User) (created []string, err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return []string{dir}, own(dir, u, 0o700)
}

// write creates a file that other users can never read, not even for a moment.
func write(path string, data []byte, u *user.User, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // creates the file with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := own(f.Name(), u, mode); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Checked is the output of `service-backend service check`: the settings that the service manager needs.
type Checked struct {
	Data         string `json:"data"`         // directory of the SQLite file; empty for PostgreSQL
	DrainSeconds int    `json:"drainSeconds"` // how long open requests may take after the stop signal
}

// check runs the program to validate the settings as the service will read them: as the service's user and without the
// environment of this shell. It adds the results to s.
func (s *spec) check(ctx context.Context, u *user.User) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, s.Program, "service", "check", "--config", s.Settings)
	cmd.Dir = filepath.VolumeName(s.Program) + string(filepath.Separator)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SERVICE_BACKEND_") })
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := runAs(cmd, u); err != nil {
		return err
	}
	var checked Checked
	err := cmd.Run()
	if errors.Is(err, fs.ErrPermission) {
		return problem.New(problem.CodeServiceSettings, "the user "+s.User+" cannot run "+s.Program,
			"Move the program to a directory where every user can run it, such as /usr/local/bin.")
	}
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &checked)
	}
	if err != nil {
		message := strings.TrimSpace(strings.TrimPrefix(complaint.String(), "service-backend: "))
		return problem.New(problem.CodeServiceSettings,
			"the user "+s.User+" cannot run the server with "+s.Settings+": "+cmp.Or(message, err.Error()),
			"Correct that file or the permissions of the files it names, then try again.")
	}
	s.Stop = checked.DrainSeconds + 30
	if checked.Data != "" {
		s.Data = checked.Data
		return nil
	}
	_, err = ensureData(s.Data, u) // a service needs a directory even if it uses PostgreSQL
	return err
}
