package broker

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/service-dev/service/glasses"
)

var (
	errAppBinary  = badFrame("the binary frames of apps must be playback.chunk")
	errNotBinary  = badFrame("binary frames must be media, audio.chunk, video.frame or motion")
	errOnlyBinary = badFrame("media, audio.chunk, video.frame and playback.chunk must be binary frames")
	errOnlooker   = badFrame("another page acts as the glasses; this one only watches")
	errUnasked    = badFrame("the result does not answer a command of this session")
)

var (
	linkStates = []string{glasses.LinkConnected, glasses.LinkLossy, glasses.LinkLost}
	errLink    = badPayload("link payload is not {state: connected, lossy or lost}")
	errDevice  = badPayload("device payload is not {deviceModel: a known model}")
)

// checkEvent returns a *glasses.Error if an event of glasses changes the session's connection or model to an unknown
// one.
func checkEvent(f glasses.Frame) error {
	switch f.Type {
	case glasses.TypeLink:
		var link glasses.LinkState
		if json.Unmarshal(f.Payload, &link) != nil || !slices.Contains(linkStates, link.State) {
			return errLink
		}
	case glasses.TypeDevice:
		var d glasses.DeviceChange
		_ = json.Unmarshal(f.Payload, &d)
		if _, known := glasses.Model(d.DeviceModel.ID); !known {
			return errDevice
		}
	}
	return nil
}

func badPayload(message string) *glasses.Error {
	return &glasses.Error{Code: glasses.CodeBadPayload, Message: message}
}

func badFrame(message string) *glasses.Error {
	return &glasses.Error{Code: glasses.CodeBadFrame, Message: message}
}

// Admit reads a text frame and checks that sender, either glasses.SenderApp or glasses.SenderGlasses, may send it. It
// compacts the payload unless the frame belongs to a stream. On failure it returns a *glasses.Error, and a frame with
// the fields that could be read, so that the refusal can contain the frame's ID.
func Admit(sender string, data []byte) (glasses.Frame, error) {
	f, err := glasses.Parse(data)
	if err == nil {
		err = Allow(sender, f.Type)
	}
	if err == nil && !glasses.IsStream(f.Type) {
		f.Payload = compact(f.Payload)
	}
	return f, err
}

// Allow returns a *glasses.Error if sender may not send text frames of type typ.
func Allow(sender, typ string) error {
	if refusal := glasses.MaySend(sender, typ); refusal != nil {
		return refusal
	}
	if glasses.IsStream(typ) && typ != glasses.TypeMotion {
		return errOnlyBinary
	}
	return nil
}

// AdmitBinary reads a binary frame and checks that sender may send it. The frame's payload and body alias data.
// On failure it returns a *glasses.Error and a frame with the fields that could be read.
func AdmitBinary(sender string, data []byte) (f glasses.Frame, body []byte, err error) {
	f, body, ok := parsePlain(data)
	if !ok {
		f, body, err = glasses.ParseBinary(data)
	}
	isChunk := f.Type == glasses.TypePlaybackChunk
	switch {
	case err != nil:
	case sender == glasses.SenderApp && !isChunk:
		err = errAppBinary
	case sender == glasses.SenderApp:
		err = glasses.CheckPlaybackChunk(f.Payload, body)
	case isChunk || !glasses.IsStream(f.Type):
		err = errNotBinary
	}
	return f, body, err
}

func compact(payload json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, payload) != nil {
		return payload
	}
	return b.Bytes()
}

// streamTypes lists the types of frames that arrive in large numbers.
var streamTypes = []string{
	glasses.TypeVideoFrame, glasses.TypeAudioChunk, glasses.TypeMotion, glasses.TypeMedia, glasses.TypePlaybackChunk,
}

// parsePlain reads a binary frame whose header has the common form {"v":1,"type":...,"id":...,"at":...,"payload":{...}}
// without decoding the header. ok is false for every other frame, valid or not.
func parsePlain(data []byte) (f glasses.Frame, body []byte, ok bool) {
	if len(data) < 2 || len(data) > glasses.MaxBinary {
		return f, nil, false
	}
	n := int(binary.BigEndian.Uint16(data))
	if n > glasses.MaxHeader || 2+n > len(data) {
		return f, nil, false
	}
	header, body := data[2:2+n], data[2+n:]
	f.V = glasses.Version
	rest, ok := bytes.CutPrefix(header, []byte(`{"v":1,"type":"`))
	if !ok {
		return f, nil, false
	}
	for _, t := range streamTypes {
		if after, ok := bytes.CutPrefix(rest, []byte(t)); ok {
			f.Type, rest = t, after
			break
		}
	}
	rest, ok = bytes.CutPrefix(rest, []byte(`","id":"`))
	if f.Type == "" || !ok {
		return f, nil, false
	}
	end := bytes.IndexByte(rest, '"')
	isSpecial := func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' }
	if end < 1 || end > glasses.MaxID || bytes.ContainsFunc(rest[:end], isSpecial) {
		return f, nil, false
	}
	f.ID = string(rest[:end])
	rest, ok = bytes.CutPrefix(rest[end:], []byte(`","at":`))
	if !ok {
		return f, nil, false
	}
	digits, payload, ok := bytes.Cut(rest, []byte(`,"payload":`))
	at, err := strconv.ParseUint(string(digits), 10, 63)
	if err != nil || !ok || len(payload) < 3 {
		return f, nil, false
	}
	f.At = int64(at)
	// The rest must be exactly one object and the end of the frame. No other field may follow, particularly a second
	// type.
	f.Payload = bytes.TrimRight(payload[:len(payload)-1], " \t\r\n")
	if f.Payload[0] != '{' || !json.Valid(f.Payload) || !json.Valid(header) || !utf8.Valid(header) ||
		glasses.TooDeep(f.Payload) {
		return f, nil, false
	}
	return f, body, true
}
