//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// fillDisk fills the disk completely.
func (s *soak) fillDisk(*rand.Rand) (string, func() error, error) {
	path := filepath.Join(s.disk, "filler")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	block, written := make([]byte, 64<<10), 0
	for size := len(block); size > 0; {
		n, err := f.Write(block[:size])
		written += n
		if err != nil {
			size /= 2
		}
	}
	return fmt.Sprintf("(%d KB)", written>>10), func() error { return os.Remove(path) }, nil
}

// jumpClock moves the daemon's clock by minutes, hours or days in either direction and then back. The jump is shorter
// than the idle limit of local sessions, which would otherwise be closed.
func (s *soak) jumpClock(rng *rand.Rand) (string, func() error, error) {
	spans := []time.Duration{time.Minute, -time.Minute, time.Hour, -time.Hour, 24 * time.Hour, 6 * 24 * time.Hour,
		-24 * time.Hour, -6 * 24 * time.Hour}
	by := spans[rng.IntN(len(spans))]
	set := func(d time.Duration) error {
		path := filepath.Join(s.seam, "clock")
		if err := os.WriteFile(path+".new", []byte(strconv.FormatInt(int64(d/time.Second), 10)), 0o600); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	}
	return "by " + by.String(), func() error { return set(0) }, set(by)
}

// rewriteAuth rewrites auth.json with the same content, as an editor does: it renames a new file to auth.json.
func (s *soak) rewriteAuth(*rand.Rand) (string, func() error, error) {
	return "", nil, s.putAuth(s.own)
}

func (s *soak) putAuth(content []byte) error {
	path := s.auth() + ".soak"
	err := os.WriteFile(path, content, 0o600)
	if err == nil {
		err = os.Rename(path, s.auth())
	}
	if err != nil {
		os.Remove(path)
	}
	if errors.Is(err, syscall.ENOSPC) {
		return nil // saving failed, so the old file remains
	}
	return err
}

func (s *soak) restoreAuth() error { return s.putAuth(s.own) }

func (s *soak) truncateAuth(rng *rand.Rand) (string, func() error, error) {
	at := rng.Int64N(int64(len(s.own) - 1))
	return fmt.Sprintf("to %d bytes", at), s.restoreAuth, os.Truncate(s.auth(), at)
}

func (s *soak) removeAuth(*rand.Rand) (string, func() error, error) {
	return "", s.restoreAuth, os.Remove(s.auth())
}

func (s *soak) foreignAuth(*rand.Rand) (string, func() error, error) {
	return "", s.restoreAuth, s.putAuth(s.foreign)
}
