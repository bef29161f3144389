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

// The spool: segments of JSON lines in Dir/spoolDir. A segment is never longer than a batch. Its name begins with a
// UUIDv7, so that the order of names is that of their making, and goes on with the mark of the backend that its events
// are for.
const (
	spoolDir   = "spool"
	segmentEnd = ".jsonl"
	// sentMark is in the name of a segment that was handed to the uploader: nobody appends to it any more.
	sentMark   = ".sent"
	lockName   = "spool.lock"
	spoolCap   = 4 << 20                   // bytes of all segments
	segmentCap = 128 << 10                 // bytes of one
	loadCap    = telemetry.MaxBody - 4<<10 // bytes of the segments of one batch
	maxLine    = 4 << 10                   // bytes of an event
)

// segmentName is what is ours in the spool; nothing else is read or deleted there. Early builds wrote no mark: such a
// segment is for no backend.
var segmentName = regexp.MustCompile(`^([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})(?:\.([0-9a-f]{16}))?(\.sent)?\.jsonl$`)

// markOf stands for a backend in names of segments.
func markOf(url string) string {
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:8])
}

// spool keeps events until they are uploaded. Several processes may use it, of which one uploads. Each change is made
// under the lock; where that cannot be had the event stands in the local log only.
type spool struct {
	area  *area
	dir   string
	cap   int64
	tally tally
	// unlink is os.Remove; tests have it fail.
	unlink func(path string) error
	// sent are segments that are done with and could not be deleted, changed under the lock.
	sent map[string]bool

	// Of the segment that this process appends to, changed under the lock.
	current string // empty for none
	mark    string
	count   int // its events
	bytes   int64
}

func newSpool(a *area) *spool {
	return &spool{
		area: a, dir: filepath.Join(a.dir, spoolDir), cap: spoolCap, tally: tally{path: filepath.Join(a.dir, tallyName)},
		unlink: os.Remove, sent: map[string]bool{},
	}
}

func (s *spool) alone(act func() error) error {
	return s.area.alone(func() error {
		if err := makeDir(s.dir); err != nil {
			return err
		}
		return act()
	})
}

// add appends an event for a backend; full tells that a batch is complete.
func (s *spool) add(url string, line []byte) (full bool, err error) {
	mark := markOf(url)
	err = s.alone(func() error {
		if s.current == "" || s.mark != mark || s.count >= telemetry.MaxBatch || s.bytes+int64(len(line)) > segmentCap {
			if err := s.begin(mark); err != nil {
				return err
			}
		}
		if err := appendTo(filepath.Join(s.dir, s.current), line); err != nil {
			s.current = "" // the next event need not meet the same
			return err
		}
		s.count, s.bytes = s.count+1, s.bytes+int64(len(line))
		full = s.count == telemetry.MaxBatch
		return nil
	})
	return full, err
}

// begin starts a segment and evicts the oldest ones until it fits below the cap.
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
			continue // it stays, and the next one goes
		}
		total, lost = total-seg.size, lost+n
	}
	s.current, s.mark, s.count, s.bytes = id.String()+"."+mark+segmentEnd, mark, 0, 0
	return s.tally.lose(lost)
}

type segment struct {
	name, id, mark string
	sealed         bool
	size           int64
}

// segments lists what waits, oldest first.
func (s *spool) segments() (list []segment, total int64, err error) {
	if err := realDir(s.dir); errors.Is(err, fs.ErrNotExist) {
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

// remove deletes a segment and tells how many events it held that were not done with; one that cannot be read counts as
// one.
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

// load is what is uploaded at a time.
type load struct {
	telemetry.Batch
	names []string // its segments
	// unread is why a segment was passed over; nil when all could be read.
	unread error
}

// next seals the oldest segments that make one batch for a backend and reads them. Lines that are no events are counted
// as lost, and so is a segment that cannot be read: it is deleted, and where even that fails passed over. Events that
// were recorded for another backend are deleted: they are nobody else's business. So is what was sent and could not be
// deleted then; it is never sent again. An empty load means that nothing waits.
func (s *spool) next(url string) (l load, err error) {
	mark := markOf(url)
	err = s.alone(func() error {
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
			done, err := s.load(&l, seg)
			switch {
			case err != nil:
				l.unread = err
				if err := s.lose(seg.name); err != nil {
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
		return load{}, err
	}
	l.Dropped = s.tally.read().Dropped
	return l, nil
}

// lose deletes a segment that cannot be read and counts it; one that cannot be deleted either stays.
func (s *spool) lose(name string) error {
	n, err := s.remove(name)
	if err != nil {
		return nil //nolint:nilerr // it is told of already, and the others go on without it
	}
	return s.tally.lose(n)
}

// load adds a segment to l; done is true when it does not fit any more.
func (s *spool) load(l *load, seg segment) (done bool, err error) {
	data, err := statefile.Read(filepath.Join(s.dir, seg.name), s.cap)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	events, lost := parse(data)
	if more := len(events) - telemetry.MaxBatch; more > 0 { // nothing that we wrote
		events, lost = events[:telemetry.MaxBatch], lost+int64(more)
	}
	if len(l.Events)+len(events) > telemetry.MaxBatch {
		return true, nil
	}
	if !seg.sealed {
		sealed := seg.id + "." + seg.mark + sentMark + segmentEnd
		if err := os.Rename(filepath.Join(s.dir, seg.name), filepath.Join(s.dir, sealed)); err != nil {
			return false, fmt.Errorf("sealing a segment: %w", err)
		}
		if seg.name == s.current {
			s.current = ""
		}
		seg.name = sealed
		// Counted once: a sealed segment is read again at the next try.
		if err := s.tally.lose(lost); err != nil {
			return false, err
		}
	}
	l.Events, l.names = append(l.Events, events...), append(l.names, seg.name)
	return false, nil
}

// drop deletes the segments of a load and changes the tally in the same turn. One that cannot be deleted is remembered:
// what became of its events is settled.
func (s *spool) drop(l load, change func(*tallied)) error {
	return s.alone(func() (err error) {
		for _, name := range l.names {
			if _, e := s.remove(name); e != nil {
				s.sent[name] = true
				err = errors.Join(err, e)
			}
		}
		return errors.Join(err, s.tally.change(change))
	})
}

// clear deletes everything that waits, with the count of what was lost, and tells how many events waited. What cannot be
// deleted is in the error and keeps nothing else.
func (s *spool) clear() (events int64, err error) {
	err = s.alone(func() error {
		segments, _, err := s.segments()
		for _, seg := range segments {
			n, e := s.remove(seg.name)
			events, err = events+n, errors.Join(err, e)
		}
		if s.tally.read().Dropped == 0 {
			return err
		}
		return errors.Join(err, s.tally.change(func(c *tallied) { c.Dropped = 0 }))
	})
	return events, err
}

// waiting tells how many events wait and how many bytes they take.
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
