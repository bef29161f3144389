package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"

	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/proto/telemetry"
)

// The spool: segments of JSON lines in Dir/spoolDir, named by a UUIDv7 so that their order is that of their making. A
// segment is never longer than a batch.
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
	// lockWait bounds the wait for another process of the same directory, which holds the lock for one file operation.
	lockWait = 200 * time.Millisecond
)

// spool keeps events until they are uploaded. Two processes may use it: the daemon, and the in-process mode of an
// agent in a sandbox, which only adds. Each change is made under a file lock; where that cannot be had the event stands
// in the local log only.
type spool struct {
	dir  string
	lock *flock.Flock
	cap  int64

	mu      sync.Mutex
	current string // the segment that this process appends to; empty for none
	count   int    // its events
	bytes   int64
	tally   tally
}

func newSpool(dir string) *spool {
	return &spool{
		dir: filepath.Join(dir, spoolDir), lock: flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600)), cap: spoolCap,
		tally: tally{path: filepath.Join(dir, tallyName)},
	}
}

// alone runs act under both locks.
func (s *spool) alone(act func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.hold()
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeDirs(s.dir); err == nil {
			err = s.hold()
		}
	}
	if err != nil {
		return fmt.Errorf("locking the spool: %w", err)
	}
	defer s.lock.Unlock() //nolint:errcheck // closing the file lets go of it in any case
	return act()
}

// hold takes the file lock.
func (s *spool) hold() error {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	_, err := s.lock.TryLockContext(ctx, 2*time.Millisecond)
	return err
}

// add appends an event; full tells that a batch is complete.
func (s *spool) add(line []byte) (full bool, err error) {
	err = s.alone(func() error {
		if s.current == "" || s.count >= telemetry.MaxBatch || s.bytes+int64(len(line)) > segmentCap {
			if err := s.begin(); err != nil {
				return err
			}
		}
		if err := appendTo(filepath.Join(s.dir, s.current), line); err != nil {
			return err
		}
		s.count, s.bytes = s.count+1, s.bytes+int64(len(line))
		full = s.count == telemetry.MaxBatch
		return nil
	})
	return full, err
}

// begin starts a segment and evicts the oldest ones until it fits below the cap.
func (s *spool) begin() error {
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
			return err
		}
		total, lost = total-seg.size, lost+n
	}
	s.current, s.count, s.bytes = id.String()+segmentEnd, 0, 0
	return s.tally.lose(lost)
}

type segment struct {
	name string
	size int64
}

// segments lists what waits, oldest first.
func (s *spool) segments() (list []segment, total int64, err error) {
	entries, err := os.ReadDir(s.dir) // sorted by name
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasSuffix(e.Name(), segmentEnd) {
			continue
		}
		list, total = append(list, segment{e.Name(), info.Size()}), total+info.Size()
	}
	return list, total, nil
}

// remove deletes a segment and tells how many events it held.
func (s *spool) remove(name string) (events int64, err error) {
	path := filepath.Join(s.dir, name)
	data, _ := statefile.Read(path, s.cap) // what cannot be read holds nothing to count
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if name == s.current {
		s.current = ""
	}
	return int64(bytes.Count(data, []byte("\n"))), nil
}

// load is what is uploaded at a time.
type load struct {
	telemetry.Batch
	names []string // its segments
}

// next seals the oldest segments that make one batch and reads them. Lines that are no events are counted as lost. An
// empty load means that nothing waits.
func (s *spool) next() (l load, err error) {
	err = s.alone(func() error {
		segments, _, err := s.segments()
		if err != nil {
			return err
		}
		var bytes int64
		for _, seg := range segments {
			if bytes+seg.size > loadCap && len(l.Events) > 0 {
				break
			}
			bytes += seg.size
			if done, err := s.load(&l, seg.name); err != nil || done {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return load{}, err
	}
	l.Dropped = s.tally.read().Dropped
	return l, nil
}

// load adds a segment to l; done is true when it does not fit any more.
func (s *spool) load(l *load, name string) (done bool, err error) {
	data, err := statefile.Read(filepath.Join(s.dir, name), s.cap)
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
	if !strings.HasSuffix(name, sentMark+segmentEnd) {
		sealed := strings.TrimSuffix(name, segmentEnd) + sentMark + segmentEnd
		if err := os.Rename(filepath.Join(s.dir, name), filepath.Join(s.dir, sealed)); err != nil {
			return false, err
		}
		if name == s.current {
			s.current = ""
		}
		name = sealed
		// Counted once: a sealed segment is read again at the next try.
		if err := s.tally.lose(lost); err != nil {
			return false, err
		}
	}
	l.Events, l.names = append(l.Events, events...), append(l.names, name)
	return false, nil
}

// drop deletes the segments of a load and changes the tally in the same turn.
func (s *spool) drop(l load, change func(*tallied)) error {
	return s.alone(func() error {
		for _, name := range l.names {
			if _, err := s.remove(name); err != nil {
				return err
			}
		}
		return s.tally.change(change)
	})
}

// clear deletes everything that waits and forgets the tally; it tells how many events waited.
func (s *spool) clear() (events int64, err error) {
	err = s.alone(func() error {
		segments, _, err := s.segments()
		if err != nil {
			return err
		}
		for _, seg := range segments {
			n, err := s.remove(seg.name)
			if err != nil {
				return err
			}
			events += n
		}
		return s.tally.forget()
	})
	return events, err
}

// waiting tells how many events wait and how many bytes they take.
func (s *spool) waiting() (events int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
