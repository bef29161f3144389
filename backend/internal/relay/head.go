package relay

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/service-dev/service/proto/glasses"
)

// binaryHead gives the type of a binary frame and the length of its body. It refuses what glasses.ParseBinary refuses.
func binaryHead(data []byte) (typ string, body int, err error) {
	if typ, body, ok := plainHead(data); ok {
		return typ, body, nil
	}
	f, rest, err := glasses.ParseBinary(data)
	if err != nil {
		refusal := (*glasses.Error)(nil)
		if errors.As(err, &refusal) {
			return "", 0, refusal
		}
		return "", 0, err
	}
	return f.Type, len(rest), nil
}

// streamTypes are the types of frames that come by the hundred.
var streamTypes = []string{glasses.TypeVideoFrame, glasses.TypeAudioChunk, glasses.TypeMotion, glasses.TypeMedia}

// plainHead reads a header as encoders commonly write it, {"v":1,"type":...,"id":...,"at":...,"payload":{...}}, without
// decoding it; ok is false for every other, right or wrong.
func plainHead(data []byte) (typ string, body int, ok bool) {
	if len(data) < 2 || len(data) > glasses.MaxBinary {
		return "", 0, false
	}
	n := int(binary.BigEndian.Uint16(data))
	if n > glasses.MaxHeader || 2+n > len(data) {
		return "", 0, false
	}
	header := data[2 : 2+n]
	rest, ok := bytes.CutPrefix(header, []byte(`{"v":1,"type":"`))
	if !ok {
		return "", 0, false
	}
	for _, t := range streamTypes {
		if after, ok := bytes.CutPrefix(rest, []byte(t)); ok {
			typ, rest = t, after
			break
		}
	}
	rest, ok = bytes.CutPrefix(rest, []byte(`","id":"`))
	if typ == "" || !ok {
		return "", 0, false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 1 || end > glasses.MaxID || bytes.ContainsFunc(rest[:end], func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' }) {
		return "", 0, false
	}
	rest, ok = bytes.CutPrefix(rest[end:], []byte(`","at":`))
	if !ok {
		return "", 0, false
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	rest, ok = bytes.CutPrefix(rest[digits:], []byte(`,"payload":`))
	if digits == 0 || digits > 18 || !ok || len(rest) < 3 {
		return "", 0, false
	}
	// What is left must be one object and the end of the frame: no field after it, least of all a second type.
	payload := rest[:len(rest)-1]
	if payload[0] != '{' || !json.Valid(payload) || !json.Valid(header) || !utf8.Valid(header) {
		return "", 0, false
	}
	return typ, len(data) - 2 - n, true
}
