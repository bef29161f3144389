package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/service-dev/service/glasses"
)

// scan reads the file from the beginning and removes an incomplete line at the end.
func (l *eventLog) scan(restore func(glasses.Event)) error {
	r := bufio.NewReaderSize(l.file, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		var row glasses.Event
		if err != nil || len(line) > maxRowLine || json.Unmarshal(line, &row) != nil {
			break // incomplete: the rest was never acknowledged
		}
		if l.size == 0 && row.Seq > 1 && row.Seq < maxSeq { // older rows were trimmed
			l.first, l.last, l.onDisk = row.Seq, row.Seq-1, row.Seq-1
		}
		if row.Seq != l.last+1 {
			break
		}
		l.last++
		l.tail = append(l.tail, line)
		l.addWritten(line)
		restore(row)
	}
	if err := l.file.Truncate(l.size); err != nil {
		return err
	}
	_, err := l.file.Seek(l.size, io.SeekStart)
	return err
}

// addWritten indexes a written row and drops old rows from memory. The caller holds mu unless the log is not shared
// yet.
func (l *eventLog) addWritten(line []byte) {
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

// trim removes the oldest rows. It frees a quarter of the limits at a time, so that it runs rarely. Only the writing
// goroutine changes the file, so readers and senders wait only while the files are swapped.
func (l *eventLog) trim() error {
	k := l.keepFrom(MaxRows/4*3, MaxLog/4*3)
	if k == 0 {
		return nil
	}
	offset := l.index[k]
	path := l.file.Name()
	if err := copyTail(path+".new", l.file, offset, l.size-offset); err != nil {
		return fmt.Errorf("trim the event log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// Windows cannot rename a file to the path of an open one.
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
	l.file, l.first, l.size = file, l.first+int64(k)*indexEvery, l.size-offset
	l.index = slices.Clone(l.index[k:])
	for i := range l.index {
		l.index[i] -= offset
	}
	return nil
}

// keepFrom returns the first index entry from which at most rows rows and bytes bytes remain. It always keeps at
// least one entry.
func (l *eventLog) keepFrom(rows, bytes int64) int {
	written := l.onDisk - l.first + 1
	for k, offset := range l.index {
		if written-int64(k)*indexEvery <= rows && l.size-offset <= bytes {
			return k
		}
	}
	return len(l.index) - 1
}

// copyTail copies the end of a file to a new file.
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

// logPage is a page of the log. next is the cursor of the following page.
type logPage struct {
	rows      []json.RawMessage // without line ends
	next      int64
	more      bool
	truncated bool // rows after the requested cursor were trimmed
}

// read returns at most limit written rows after since.
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

// readEvents returns at most limit rows after since (host.Rows).
func (l *eventLog) readEvents(_ context.Context, since int64, limit int) ([]glasses.Event, error) {
	p, err := l.read(since, limit)
	if err != nil {
		return nil, err
	}
	rows := make([]glasses.Event, len(p.rows))
	for i, raw := range p.rows {
		if err := json.Unmarshal(raw, &rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// fromFile reads rows that are no longer in memory. It skips the first skip rows of the file. The caller holds mu.
func (l *eventLog) fromFile(skip int64, count int) ([]json.RawMessage, error) {
	at := skip / indexEvery
	offset := l.index[at]
	r := bufio.NewReaderSize(io.NewSectionReader(l.file, offset, l.size-offset), 64<<10)
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
