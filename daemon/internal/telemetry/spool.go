package telemetry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/google/uuid"

	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/proto/telemetry"
)

// Limits and names of the spool, which consists of segments of JSON lines in Dir/spoolDir. A segment is never longer
// than a batch. Its name consists of a UUIDv7, so that names sort by age, and the mark of the backend for which the
// events are.
const (
	spoolDir   = "spool"
	segmentEnd = ".jsonl"
	// sentMark is part of the name of a segment that the uploader has received. No events are appended to such a
	// segment.
	sentMark   = ".sent"
	lockName   = "spool.lock"
	spoolCap   = 4 << 20                   // bytes of all segments
	segmentCap = 128 << 10                 // bytes of one segment
	loadCap    = telemetry.MaxBody - 4<<10 // bytes of the segments of one batch
	maxLine    = 4 << 10                   // bytes per event
)

// segmentName matches the names of segments. Other files in the spool are neither read nor deleted. Early builds wrote
// no mark; their segments are never uploaded.
var segmentName = regexp.MustCompile(`^([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})(?:\.([0-9a-f]{16}))?(\.sent)?\.jsonl$`)

// markOf returns a backend's mark in the names of segments.
func markOf(url string) string {
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:8])
}

// spool stores events until they are uploaded. Several processes may use it, one of which uploads. Each change is made
// while holding the lock. While another process holds the lock, events are written only to the local log.
type spool struct {
	lockedDir   *lockedDir
	dir         string
	cap         int64
	counterFile counterFile
	// unlink is os.Remove, or a replacement in tests.
	unlink func(path string) error
	// sent holds segments that were uploaded but could not be deleted. The lock guards it.
	sent map[string]bool

	// The segment to which this process appends. The lock guards these fields.
	current string // empty if there is none
	mark    string
	count   int // number of its events
	bytes   int64
}

func newSpool(a *lockedDir) *spool {
	return &spool{
		lockedDir: a, dir: filepath.Join(a.dir, spoolDir), cap: spoolCap, counterFile: counterFile{path: filepath.Join(a.dir,
			countersName)},
		unlink: os.Remove, sent: map[string]bool{},
	}
}

func (s *spool) withLock(act func() error) error {
	return s.lockedDir.withLock(func() error {
		if err := makeDir(s.dir); err != nil {
			return err
		}
		return act()
	})
}

// add appends an event for a backend. full reports whether a batch is complete.
func (s *spool) add(url string, line []byte) (full bool, err error) {
	mark := markOf(url)
	err = s.withLock(func() error {
		if s.current == "" || s.mark != mark || s.count >= telemetry.MaxBatch || s.bytes+int64(len(line)) > segmentCap {
			if err := s.begin(mark); err != nil {
				return err
			}
		}
		if err := appendLine(filepath.Join(s.dir, s.current), line); err != nil {
			s.current = "" // the next event starts a new segment
			return err
		}
		s.count, s.bytes = s.count+1, s.bytes+int64(len(line))
		full = s.count == telemetry.MaxBatch
		return nil
	})
	return full, err
}

// begin starts a segment and deletes the oldest segments until the spool is below its limit.
func (s *spool) begin(mark string) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	segments, total, err := s.segments()
	if err != nil {
		return err
	}
	var lost int64
	for _, seg := range segments {
		if total+segmentCap <= s.cap {
			break
		}
		n, err := s.remove(seg.name)
		if err != nil {
			continue // keep this segment and try the next one
		}
		total, lost = total-seg.size, lost+n
	}
	s.current, s.mark, s.count, s.bytes = id.String()+"."+mark+segmentEnd, mark, 0, 0
	return s.counterFile.addDropped(lost)
}

type segment struct {
	name, id, mark string
	sealed         bool
	size           int64
}

// segments lists the segments, oldest first.
func (s *spool) segments() (list []segment, total int64, err error) {
	if err := checkDir(s.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	} else if err != nil {
		return nil, 0, err
	}
	entries, err := os.ReadDir(s.dir) // sorted by name
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		part := segmentName.FindStringSubmatch(e.Name())
		if info, err := e.Info(); part != nil && err == nil && info.Mode().IsRegular() {
			list = append(list, segment{name: e.Name(), id: part[1], mark: part[2], sealed: part[3] != "", size: info.Size()})
			total += info.Size()
		}
	}
	return list, total, nil
}

// remove deletes a segment and returns the number of events lost, which is 1 for an unreadable segment.
func (s *spool) remove(name string) (events int64, err error) {
	path := filepath.Join(s.dir, name)
	data, readErr := statefile.Read(path, s.cap)
	if err := s.unlink(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if name == s.current {
		s.current = ""
	}
	if s.sent[name] {
		delete(s.sent, name)
		return 0, nil
	}
	if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
		return 1, nil
	}
	return int64(bytes.Count(data, []byte("\n"))), nil
}

// batch is the content of one upload.
type batch struct {
	telemetry.Batch
	names []string // its segments
	// unread is the reason why a segment was skipped, or nil.
	unread error
}

// next seals and reads the oldest segments that make one batch for a backend. It counts lines that are not events as
// lost. It counts an unreadable segment as lost and deletes it, or skips it if it cannot be deleted. It also deletes
// events for another backend, and segments that were sent earlier but could not be deleted. An empty batch means that
// there is nothing to upload.
func (s *spool) next(url string) (l batch, err error) {
	mark := markOf(url)
	err = s.withLock(func() error {
		segments, _, err := s.segments()
		if err != nil {
			return err
		}
		var bytes int64
		for _, seg := range segments {
			if seg.mark != mark || s.sent[seg.name] {
				if _, err := s.remove(seg.name); err != nil {
					l.unread = err
				}
				continue
			}
			if bytes+seg.size > loadCap && len(l.Events) > 0 {
				break
			}
			done, err := s.batch(&l, seg)
			switch {
			case err != nil:
				l.unread = err
				if err := s.addDropped(seg.name); err != nil {
					return err
				}
				continue
			case done:
				return nil
			}
			bytes += seg.size
		}
		return nil
	})
	if err != nil {
		return batch{}, err
	}
	l.Dropped = s.counterFile.read().Dropped
	return l, nil
}

// addDropped deletes an unreadable segment and counts it as lost. If the segment cannot be deleted, addDropped does not
// count it.
func (s *spool) addDropped(name string) error {
	n, err := s.remove(name)
	if err != nil {
		return nil //nolint:nilerr // already reported; the other segments are still used
	}
	return s.counterFile.addDropped(n)
}

// batch adds a segment to l. done is true if the segment does not fit.
func (s *spool) batch(l *batch, seg segment) (done bool, err error) {
	data, err := statefile.Read(filepath.Join(s.dir, seg.name), s.cap)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	events, lost := parse(data)
	if more := len(events) - telemetry.MaxBatch; more > 0 { // another program wrote the segment
		events, lost = events[:telemetry.MaxBatch], lost+int64(more)
	}
	if len(l.Events)+len(events) > telemetry.MaxBatch {
		return true, nil
	}
	if !seg.sealed {
		sealed := seg.id + "." + seg.mark + sentMark + segmentEnd
		if err := os.Rename(filepath.Join(s.dir, seg.name), filepath.Join(s.dir, sealed)); err != nil {
			return false, fmt.Errorf("seal a segment: %w", err)
		}
		if seg.name == s.current {
			s.current = ""
		}
		seg.name = sealed
		// Count the lost events only after the segment is sealed, so that a later attempt does not count them again.
		if err := s.counterFile.addDropped(lost); err != nil {
			return false, err
		}
	}
	l.Events, l.names = append(l.Events, events...), append(l.names, seg.name)
	return false, nil
}

// drop deletes the segments of a batch and updates the counters in the same step. It records a segment that cannot be
// deleted in sent, because the segment's events are already counted.
func (s *spool) drop(l batch, change func(*counters)) error {
	return s.withLock(func() (err error) {
		for _, name := range l.names {
			if _, e := s.remove(name); e != nil {
				s.sent[name] = true
				err = errors.Join(err, e)
			}
		}
		return errors.Join(err, s.counterFile.change(change))
	})
}

// clear deletes all spooled events, resets the count of lost events, and returns the number of deleted events. If some
// files cannot be deleted, it returns an error but still deletes the others.
func (s *spool) clear() (events int64, err error) {
	err = s.withLock(func() error {
		segments, _, err := s.segments()
		for _, seg := range segments {
			n, e := s.remove(seg.name)
			events, err = events+n, errors.Join(err, e)
		}
		if s.counterFile.read().Dropped == 0 {
			return err
		}
		return errors.Join(err, s.counterFile.change(func(c *counters) { c.Dropped = 0 }))
	})
	return events, err
}

// waiting returns the number of spooled events and their size in bytes.
func (s *spool) waiting() (events int, bytes int64) {
	segments, total, err := s.segments()
	if err != nil {
		return 0, 0
	}
	for _, seg := range segments {
		data, err := statefile.Read(filepath.Join(s.dir, seg.name), s.cap)
		if err != nil {
			continue
		}
		found, _ := parse(data)
		events += len(found)
	}
	return events, total
}
