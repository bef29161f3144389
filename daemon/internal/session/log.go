package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/host"
)

const (
	indexEvery = 256       // rows between two entries of index
	tailRows   = 1024      // limit on rows in memory
	tailBytes  = 256 << 10 // limit on their size in bytes once they are written
	maxWaiting = 1024      // limit on unwritten rows, above which senders wait
	maxRowLine = 1 << 20   // limit on the bytes of a line when reading
	maxSeq     = 1 << 53   // the largest cursor that can be passed to a tool
	writeTries = 5
	writePause = 200 * time.Millisecond
	// linger is how long the writer waits for more rows, unless a caller is waiting for them.
	linger = 2 * time.Millisecond
)

// eventLog is the event log of one session, with one JSON row per line. Rows get their seq immediately and are written
// in batches by one goroutine. Readers see only written rows. eventLog removes an incomplete line left by a killed
// daemon, and the oldest rows beyond MaxRows or MaxLog. Recent rows are kept in memory; older ones are read from the
// file. Writes are not synced, so they survive a crash of the daemon but not a power failure.
type eventLog struct {
	file    *os.File
	written func(batch []entry) // called by the writing goroutine after each batch
	broken  func(error)         // called once if rows cannot be written
	pause   time.Duration       // pause before the second attempt to write; doubles each time

	mu      sync.Mutex
	drained *sync.Cond    // signals that waiting became shorter
	work    chan struct{} // has an element while rows are waiting
	hurry   chan struct{} // has an element while a caller waits for them
	waiting []entry
	first   int64 // seq of the oldest row in the file, or of the next row if the file is empty
	last    int64 // seq of the newest row
	onDisk  int64 // seq of the last written row
	size    int64
	index   []int64 // file offset of row first+k*indexEvery
	tail    [][]byte
	bytes   int
	flushed chan struct{} // closed and replaced after each batch
	failed  error
}

// entry is a row to be written, with the app to which the row is acknowledged. An entry without a line acknowledges a
// row that was written earlier.
type entry struct {
	row  glasses.Event
	line []byte
	from host.Receiver
}

// openLog finds the rows in the file and calls restore for each.
func openLog(path string, restore func(glasses.Event)) (*eventLog, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	l := &eventLog{
		file: file, first: 1, pause: writePause, work: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		flushed: make(chan struct{}),
	}
	l.drained = sync.NewCond(&l.mu)
	if err := l.scan(restore); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

// append assigns the row its seq and passes it to the writer. It waits while too many rows are unwritten. If the log
// has failed, it returns false and the row is lost.
func (l *eventLog) append(row glasses.Event, from host.Receiver) (int64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) >= maxWaiting && l.failed == nil {
		notify(l.hurry)
		l.drained.Wait()
	}
	if l.failed != nil {
		return 0, false
	}
	row.Seq = l.last + 1
	if row.Sender == glasses.SenderService && row.ID == "" {
		row.ID = fmt.Sprintf("svc-%d", row.Seq)
	}
	line, err := json.Marshal(row)
	if err != nil {
		return 0, false // the payload is not JSON, which Admit has already rejected
	}
	line = append(line, '\n')
	l.last = row.Seq
	l.tail = append(l.tail, line)
	l.waiting = append(l.waiting, entry{row: row, line: line, from: from})
	notify(l.work)
	return row.Seq, true
}

// acknowledge acknowledges an earlier row once it is written.
func (l *eventLog) acknowledge(row glasses.Event, to host.Receiver) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return
	}
	l.waiting = append(l.waiting, entry{row: row, from: to})
	notify(l.work)
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// serve writes rows until ctx ends and none are left, then closes the file.
func (l *eventLog) serve(ctx context.Context) {
	defer func() { _ = l.file.Close() }()
	for {
		l.drain(ctx)
		select {
		case <-l.work:
			select {
			case <-time.After(linger):
			case <-l.hurry:
			case <-ctx.Done():
			}
		case <-ctx.Done():
			l.drain(ctx)
			l.stop(errLogClosed)
			return
		}
	}
}

var errLogClosed = errors.New("the session's log is closed")

// drain writes rows until no rows are left or the log has failed.
func (l *eventLog) drain(ctx context.Context) {
	for {
		l.mu.Lock()
		batch := l.waiting
		l.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		if err := l.flush(ctx, batch); err != nil {
			l.stop(err)
			l.broken(err)
			return
		}
	}
}

// flush writes a batch, wakes its waiters, and trims the file if it is full.
func (l *eventLog) flush(ctx context.Context, batch []entry) error {
	if err := l.write(ctx, batch); err != nil {
		return err
	}
	l.mu.Lock()
	for _, e := range batch {
		if e.line != nil {
			l.addWritten(e.line)
		}
	}
	l.waiting = slices.Clone(l.waiting[len(batch):])
	flushed := l.flushed
	l.flushed = make(chan struct{})
	l.drained.Broadcast()
	isFull := l.size > MaxLog || l.onDisk-l.first >= MaxRows
	l.mu.Unlock()
	l.written(batch)
	close(flushed)
	if !isFull {
		return nil
	}
	return l.trim()
}

// write appends a batch to the file. It retries for several seconds, so that no rows are lost if the disk is full for a
// short time. Each attempt overwrites the incomplete data of the previous one.
func (l *eventLog) write(ctx context.Context, batch []entry) error {
	var b bytes.Buffer
	for _, e := range batch {
		b.Write(e.line)
	}
	var err error
	for try := range writeTries {
		if try > 0 {
			select {
			case <-time.After(l.pause << try):
			case <-ctx.Done():
			}
		}
		if _, err = l.file.WriteAt(b.Bytes(), l.size); err == nil {
			return nil
		}
	}
	return errors.Join(err, l.file.Truncate(l.size))
}

func (l *eventLog) stop(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return
	}
	l.failed, l.waiting = why, nil
	l.drained.Broadcast()
	close(l.flushed)
}

// oldest returns the seq of the first row in the file.
func (l *eventLog) oldest() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// newest returns the seq of the last row, written or not.
func (l *eventLog) newest() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// waitWritten waits until the rows up to seq are written.
func (l *eventLog) waitWritten(ctx context.Context, seq int64) error {
	for {
		l.mu.Lock()
		flushed, failed, isWritten := l.flushed, l.failed, l.onDisk >= seq
		l.mu.Unlock()
		if isWritten {
			return nil
		}
		if failed != nil {
			return failed
		}
		notify(l.hurry)
		select {
		case <-flushed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
