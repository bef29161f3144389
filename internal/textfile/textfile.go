// Package textfile decodes text files that users write with their own editor. Some editors and shells begin a file
// with a byte order mark, or write UTF-16.
package textfile

import (
	"bytes"
	"errors"
)

// ErrUTF16 is returned for text in UTF-16, which PowerShell 5 writes by default.
var ErrUTF16 = errors.New("file is UTF-16; save it as UTF-8")

// Decode returns the text of a file without its byte order mark.
func Decode(data []byte) ([]byte, error) {
	isUTF16 := bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) ||
		len(data) > 1 && (data[0] == 0) != (data[1] == 0) // the first character is ASCII
	if isUTF16 {
		return nil, ErrUTF16
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}
