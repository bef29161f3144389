package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/internal/buildinfo"
)

// options are the command-line options.
type options struct {
	root, out, version, only           string
	targets                            string // e.g. linux-amd64,linux-arm64; empty means all
	releaseURL, releaseKey, backendURL string
	secretKey                          string // path of a file
	dirty                              bool   // include uncommitted files
}

// release holds the input of all artefacts.
type release struct {
	options
	commit string
	time   time.Time         // time of the commit
	work   string            // a temporary directory
	chosen []target          // the targets of this run
	built  map[target]string // directories of the programs already built
}

// newRelease reads the commit and prepares the directories. Call close at the end.
func newRelease(ctx context.Context, o options) (*release, error) {
	if _, ok := buildinfo.Compare(o.version, "0.0.0"); !ok || strings.ContainsAny(o.version, "v+") {
		return nil, fmt.Errorf("-version %q is not a semantic version such as 1.4.0 or 1.4.0-rc.1", o.version)
	}
	for _, dir := range []*string{&o.root, &o.out} {
		absolute, err := filepath.Abs(*dir)
		if err != nil {
			return nil, err
		}
		*dir = absolute
	}
	chosen, err := parseTargets(o.targets)
	if err != nil {
		return nil, err
	}
	commit, seconds, err := headOf(ctx, o.root)
	if err != nil {
		return nil, err
	}
	if changes, err := command(ctx, o.root, "git", "status", "--porcelain").Output(); err != nil {
		return nil, fmt.Errorf("git status: %w", err)
	} else if len(changes) > 0 && !o.dirty {
		return nil, fmt.Errorf("a release is made from a commit, but these files differ from it:\n%s", changes)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return nil, err
	}
	if files, err := os.ReadDir(o.out); err != nil || len(files) > 0 {
		return nil, errors.Join(err, fmt.Errorf("%s is not empty", o.out))
	}
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	return &release{
		options: o, commit: commit, time: time.Unix(seconds, 0).UTC(), work: work, chosen: chosen, built: map[target]string{},
	}, nil
}

// headOf returns the commit of the repository and its time in seconds.
func headOf(ctx context.Context, root string) (commit string, seconds int64, err error) {
	out, err := command(ctx, root, "git", "log", "-1", "--format=%H %ct").Output()
	if err != nil {
		return "", 0, fmt.Errorf("git log: %w", err)
	}
	commit, stamp, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	seconds, err = strconv.ParseInt(stamp, 10, 64)
	return commit, seconds, err
}

// command returns a command that runs in a directory and writes its errors to stderr.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	return cmd
}

func (r *release) close() { _ = os.RemoveAll(r.work) }

// makeAll makes the artefacts of the table in order, because later ones contain the checksums of earlier ones.
func (r *release) makeAll(ctx context.Context) error {
	for _, a := range table(r) {
		if r.only != "" {
			if ok, err := path.Match(r.only, a.name); err != nil || !ok {
				if err != nil {
					return err
				}
				continue
			}
		}
		began := time.Now()
		file := filepath.Join(r.out, a.name)
		if err := a.make(ctx, r, file); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		fmt.Printf("%-52s %9.1f MB %6.1f s\n", a.name, float64(info.Size())/1e6, time.Since(began).Seconds())
	}
	return nil
}

// checksum returns the hexadecimal SHA-256 of an artefact that has already been made.
func (r *release) checksum(name string) (string, error) {
	f, err := os.Open(filepath.Join(r.out, name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
