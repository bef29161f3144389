package stdioproxy

import (
	"errors"
	"io"

	"github.com/service-dev/service/internal/mcpline"
)

// Maximum lengths of one line in bytes, excluding its newline. The daemon may send longer lines than it accepts.
const (
	maxClientLine = 4 << 20
	maxDaemonLine = 64 << 20
)

// errTooLong is returned for a line over the limit. The reader skips the line, and head holds its beginning.
var errTooLong = errors.New("line is too long")

// lineReader splits a stream into lines. It releases the buffer of a long line afterwards.
type lineReader struct {
	r          io.Reader
	max        int
	buf        []byte
	start, end int // bounds of the bytes read but not yet returned
	head       *mcpline.Head
	started    bool // a line was already returned
}

const bufferSize = 16 << 10

func newLineReader(r io.Reader, max int) *lineReader {
	return &lineReader{r: r, max: max, buf: make([]byte, bufferSize)}
}

// next returns the next line including its newline, which the last line may lack. The line is valid until the next
// call.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.readLine()
	if !l.started {
		l.started = true
		line = mcpline.TrimMark(line)
	}
	return line, err
}

func (l *lineReader) readLine() ([]byte, error) {
	l.shrink()
	scanned, skipping := 0, false
	l.head = nil
	for {
		for i := l.start + scanned; i < l.end; i++ {
			if l.buf[i] != '\n' {
				continue
			}
			line := l.buf[l.start : i+1]
			l.start = i + 1
			if skipping || len(line) > l.max+2 {
				l.skip(line)
				return nil, errTooLong
			}
			return line, nil
		}
		scanned = l.end - l.start
		if scanned > l.max {
			l.skip(l.buf[l.start:l.end])
			l.start, l.end, scanned, skipping = 0, 0, 0, true
		}
		l.grow()
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		if err != nil && n == 0 {
			return l.last(skipping, err)
		}
	}
}

// last returns the rest of the stream, which has no newline.
func (l *lineReader) last(skipping bool, err error) ([]byte, error) {
	line := l.buf[l.start:l.end]
	l.start = l.end
	switch {
	case skipping || len(line) > l.max:
		l.skip(line)
		return nil, errTooLong
	case len(line) > 0 && errors.Is(err, io.EOF):
		return line, nil
	}
	return nil, err
}

// skip reads the head of an overlong line in pieces and discards the rest.
func (l *lineReader) skip(piece []byte) {
	if l.head == nil {
		l.head = &mcpline.Head{}
	}
	_, _ = l.head.Write(piece)
}

// grow makes space in the buffer for the next read.
func (l *lineReader) grow() {
	if l.end < len(l.buf) {
		return
	}
	if l.start > 0 {
		l.end = copy(l.buf, l.buf[l.start:l.end])
		l.start = 0
		return
	}
	bigger := make([]byte, 2*len(l.buf))
	copy(bigger, l.buf[:l.end])
	l.buf = bigger
}

func (l *lineReader) shrink() {
	if len(l.buf) > 4*bufferSize && l.end-l.start < bufferSize {
		small := make([]byte, bufferSize)
		l.end = copy(small, l.buf[l.start:l.end])
		l.start, l.buf = 0, small
	}
}
