package mcpgate

import (
	"bufio"
	"errors"
	"io"

	"github.com/service-dev/service/internal/mcpline"
)

// MaxLine is the maximum length of an MCP message, in bytes.
const MaxLine = 4 << 20

// errLineTooLong is returned for a line over the limit. head then describes the skipped line, and the reader continues
// with the next one.
var errLineTooLong = errors.New("line is too long")

// lineReader splits a stream into lines. max limits its buffer, which shrinks again after a long line.
type lineReader struct {
	r     *bufio.Reader
	max   int
	head  *mcpline.Head
	begun bool // whether the first line was returned
}

func newLineReader(r io.Reader, max int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 8<<10), max: max}
}

// next returns the next line without its newline. The last line may lack one. The caller owns the line.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.cut()
	if !l.begun {
		l.begun = true
		line = mcpline.TrimMark(line)
	}
	return line, err
}

func (l *lineReader) cut() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(trimEnd(part)) > l.max {
			l.head = mcpline.Of(line)
			_, _ = l.head.Write(part)
			if errors.Is(err, bufio.ErrBufferFull) {
				err = l.skip()
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, err
			}
			return nil, errLineTooLong
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return trimEnd(line), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return trimEnd(line), nil
		default:
			return nil, err
		}
	}
}

// skip discards the rest of the line.
func (l *lineReader) skip() error {
	for {
		part, err := l.r.ReadSlice('\n')
		_, _ = l.head.Write(part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func trimEnd(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}
