package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/service-dev/service/proto/glasses"
)

const (
	indexEvery = 256       // rows between two known places of the file
	tailRows   = 1024      // rows kept in memory at most
	tailBytes  = 256 << 10 // and their bytes, unless they still wait to be written
	maxWaiting = 1024      // rows that wait for the disk before senders have to
	maxRowLine = 1 << 20   // bytes of one line that is read back
	maxSeq     = 1 << 53   // what a cursor of a tool can name
	writeTries = 5
	writePause = 200 * time.Millisecond
	// linger is how long the writer waits for more rows, unless somebody waits for them.
	linger = 2 * time.Millisecond
)

// eventLog is the event log of one session: one JSON row a line. Rows get their seq at once and are written in batches by
// one goroutine; readers see only what was written. A line that a killed daemon left unfinished is cut off. Of more than
// MaxRows or MaxLog the oldest rows are cut off too. It holds recent rows in memory and finds older ones in the file. Writes are not synced: they
// outlive the daemon, not a power cut.
type eventLog struct {
	file    *os.File
	written func(batch []entry) // told after each batch, by the writing goroutine
	broken  func(error)         // told once, when rows cannot be written
	pause   time.Duration       // before the second attempt to write; it doubles

	mu      sync.Mutex
	room    *sync.Cond    // waiting got shorter
	work    chan struct{} // has an entry when rows wait
	hurry   chan struct{} // has an entry when somebody waits for them
	waiting []entry
	first   int64 // seq of the oldest row in the file, or of the next row in an empty one
	last    int64 // seq of the newest row
	onDisk  int64 // seq of the newest written row
	size    int64
	index   []int64 // place of row first+k*indexEvery
	tail    [][]byte
	bytes   int
	wake    chan struct{} // closed and made anew after each batch
	failed  error
}

// entry is one row on its way to the file, and who is acknowledged then. Without a line it is a row from before, which
// is only acknowledged again.
type entry struct {
	row  glasses.Event
	line []byte
	from *App
}

// openLog reads the file once, to know where its rows are; each is given to seen.
func openLog(path string, seen func(glasses.Event)) (*eventLog, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	l := &eventLog{file: file, first: 1, pause: writePause, work: make(chan struct{}, 1), hurry: make(chan struct{}, 1), wake: make(chan struct{})}
	l.room = sync.NewCond(&l.mu)
	if err := l.scan(seen); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

func (l *eventLog) scan(seen func(glasses.Event)) error {
	r := bufio.NewReaderSize(l.file, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		var row glasses.Event
		if err != nil || len(line) > maxRowLine || json.Unmarshal(line, &row) != nil {
			break // torn: what follows was never acknowledged
		}
		if l.size == 0 && row.Seq > 1 && row.Seq < maxSeq { // older rows were cut off
			l.first, l.last, l.onDisk = row.Seq, row.Seq-1, row.Seq-1
		}
		if row.Seq != l.last+1 {
			break
		}
		l.last++
		l.tail = append(l.tail, line)
		l.landed(line)
		seen(row)
	}
	if err := l.file.Truncate(l.size); err != nil {
		return err
	}
	_, err := l.file.Seek(l.size, io.SeekStart)
	return err
}

// landed counts a row that is in the file now, and forgets old ones. mu is held, or the log is not shared yet.
func (l *eventLog) landed(line []byte) {
	if (l.onDisk+1-l.first)%indexEvery == 0 {
		l.index = append(l.index, l.size)
	}
	l.onDisk++
	l.size += int64(len(line))
	l.bytes += len(line)
	if len(l.tail) < 2*tailRows && l.bytes < 2*tailBytes {
		return
	}
	drop := 0
	for len(l.tail)-drop > tailRows || l.bytes > tailBytes {
		if l.last-int64(len(l.tail)-drop) >= l.onDisk {
			break
		}
		l.bytes -= len(l.tail[drop])
		drop++
	}
	l.tail = append([][]byte(nil), l.tail[drop:]...)
}

// append gives the row its seq and hands it to the writer; it waits while too many do. It tells false when the log is
// broken: the row is lost.
func (l *eventLog) append(row glasses.Event, from *App) (int64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) >= maxWaiting && l.failed == nil {
		poke(l.hurry)
		l.room.Wait()
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
		return 0, false // a payload that is no JSON; Parse has refused those
	}
	line = append(line, '\n')
	l.last = row.Seq
	l.tail = append(l.tail, line)
	l.waiting = append(l.waiting, entry{row: row, line: line, from: from})
	poke(l.work)
	return row.Seq, true
}

// again acknowledges a row that was appended before, once it is written.
func (l *eventLog) again(row glasses.Event, to *App) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return
	}
	l.waiting = append(l.waiting, entry{row: row, from: to})
	poke(l.work)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// serve writes until ctx ends and nothing waits. Then it closes the file.
func (l *eventLog) serve(ctx context.Context) {
	defer func() { _ = l.file.Close() }()
	for {
		l.drain(ctx)
		select {
		case <-l.work:
			more := time.NewTimer(linger)
			select {
			case <-more.C:
			case <-l.hurry:
			case <-ctx.Done():
			}
			more.Stop()
		case <-ctx.Done():
			l.drain(ctx)
			l.stop(errLogClosed)
			return
		}
	}
}

var errLogClosed = errors.New("the session's log is closed")

func (l *eventLog) drain(ctx context.Context) {
	for {
		l.mu.Lock()
		batch := l.waiting
		l.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		if err := l.write(ctx, batch); err != nil {
			l.stop(err)
			l.broken(err)
			return
		}
		l.mu.Lock()
		for _, e := range batch {
			if e.line != nil {
				l.landed(e.line)
			}
		}
		l.waiting = append([]entry(nil), l.waiting[len(batch):]...)
		wake := l.wake
		l.wake = make(chan struct{})
		l.room.Broadcast()
		over := l.size > MaxLog || l.onDisk-l.first >= MaxRows
		l.mu.Unlock()
		l.written(batch)
		close(wake)
		if !over {
			continue
		}
		if err := l.trim(); err != nil {
			l.stop(err)
			l.broken(err)
			return
		}
	}
}

// write puts a batch into the file. A disk that is full for a moment must not cost a row: it tries again for some
// seconds, and what was written by half is cut off first.
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

// trim cuts off the oldest rows, a quarter of what the log may hold so that it is seldom done. Only the writing goroutine
// changes the file, so readers and senders wait for the swap alone.
func (l *eventLog) trim() error {
	k := l.keepFrom(MaxRows/4*3, MaxLog/4*3)
	if k == 0 {
		return nil
	}
	place := l.index[k]
	path := l.file.Name()
	if err := copyTail(path+".new", l.file, place, l.size-place); err != nil {
		return fmt.Errorf("trim the event log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// Closed first: Windows renames onto no file that is open.
	err := l.file.Close()
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("trim the event log: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open the trimmed event log: %w", err)
	}
	l.file, l.first, l.size = file, l.first+int64(k)*indexEvery, l.size-place
	l.index = slices.Clone(l.index[k:])
	for i := range l.index {
		l.index[i] -= place
	}
	return nil
}

// keepFrom returns the first place of the index from which on no more than so many rows and bytes are left, but one that
// leaves something.
func (l *eventLog) keepFrom(rows, bytes int64) int {
	written := l.onDisk - l.first + 1
	for k, place := range l.index {
		if written-int64(k)*indexEvery <= rows && l.size-place <= bytes {
			return k
		}
	}
	return len(l.index) - 1
}

// copyTail writes a part of a file to a new one.
func copyTail(path string, from io.ReaderAt, at, size int64) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			_ = os.Remove(path)
		}
	}()
	if _, err := io.Copy(file, io.NewSectionReader(from, at, size)); err != nil {
		return err
	}
	return file.Sync()
}

func (l *eventLog) stop(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return
	}
	l.failed, l.waiting = why, nil
	l.room.Broadcast()
	close(l.wake)
}

// oldest is the seq of the first row that is kept.
func (l *eventLog) oldest() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// newest is the seq of the last row, written or not.
func (l *eventLog) newest() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// reach waits until the rows up to seq are written.
func (l *eventLog) reach(ctx context.Context, seq int64) error {
	for {
		l.mu.Lock()
		wake, failed, there := l.wake, l.failed, l.onDisk >= seq
		l.mu.Unlock()
		if there {
			return nil
		}
		if failed != nil {
			return failed
		}
		poke(l.hurry)
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// logPage is a page of the log: next is the cursor for the next one.
type logPage struct {
	rows      []json.RawMessage // without their line ends
	next      int64
	more      bool
	truncated bool // rows after the cursor that was asked for are gone
}

// read returns up to limit written rows after since.
func (l *eventLog) read(since int64, limit int) (p logPage, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.truncated = since < l.first-1; p.truncated {
		since = l.first - 1
	}
	count := min(l.onDisk-since, int64(limit))
	if count <= 0 {
		p.next = since
		return p, nil
	}
	p.next, p.more = since+count, since+count < l.onDisk
	if before := l.last - int64(len(l.tail)); since >= before {
		for _, line := range l.tail[since-before : since-before+count] {
			p.rows = append(p.rows, json.RawMessage(line[:len(line)-1]))
		}
		return p, nil
	}
	p.rows, err = l.fromFile(since-l.first+1, int(count))
	return p, err
}

// fromFile reads rows that memory has forgotten, after so many of the file. mu is held.
func (l *eventLog) fromFile(skip int64, count int) ([]json.RawMessage, error) {
	at := skip / indexEvery
	place := l.index[at]
	r := bufio.NewReaderSize(io.NewSectionReader(l.file, place, l.size-place), 64<<10)
	for range skip - at*indexEvery {
		if _, err := r.ReadBytes('\n'); err != nil {
			return nil, err
		}
	}
	rows := make([]json.RawMessage, 0, count)
	for range count {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		rows = append(rows, json.RawMessage(line[:len(line)-1]))
	}
	return rows, nil
}
