package attach

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"strconv"

	"github.com/service-dev/service/glasses"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Sender is the stream to the host.
type Sender interface {
	Send(*pluginv1.AttachResponse) error
}

// ParseRequest returns the frame of a request and the body of a binary frame. On failure it returns a *glasses.Error.
func ParseRequest(m *pluginv1.AttachRequest) (f glasses.Frame, body []byte, err error) {
	switch m := m.GetMessage().(type) {
	case *pluginv1.AttachRequest_Frame:
		f, err = glasses.Parse(m.Frame)
	case *pluginv1.AttachRequest_Binary:
		f, body, err = glasses.ParseBinary(m.Binary)
	default:
		err = &glasses.Error{Code: glasses.CodeBadFrame, Message: "the request is neither a frame nor a binary frame"}
	}
	var e *glasses.Error
	if err != nil && !errors.As(err, &e) {
		err = &glasses.Error{Code: glasses.CodeBadFrame, Message: err.Error()}
	}
	return f, body, err
}

// Frames sends the frames of one session to the host. It is not safe for concurrent use.
type Frames struct {
	To  Sender
	Log *slog.Logger
	// Broken is the error that made sending fail, after the host has exited.
	Broken error
}

// Send sends a text frame, or a binary frame if body is not nil.
func (s *Frames) Send(f glasses.Frame, body []byte) {
	if s.Broken != nil {
		return
	}
	m := &pluginv1.AttachResponse{}
	var data []byte
	var err error
	if body != nil {
		data, err = glasses.EncodeBinary(f, body)
		m.Message = &pluginv1.AttachResponse_Binary{Binary: data}
	} else {
		data, err = f.Encode()
		m.Message = &pluginv1.AttachResponse_Frame{Frame: data}
	}
	if err != nil {
		s.Log.Error("failed to encode a frame", "type", f.Type, "err", err)
		return
	}
	s.Broken = s.To.Send(m)
}

// Put sends a text frame with these fields.
func (s *Frames) Put(typ, id string, now int64, payload any) {
	f, err := glasses.New(typ, id, now, payload)
	if err != nil {
		s.Log.Error("failed to encode a frame", "type", typ, "err", err)
		return
	}
	s.Send(f, nil)
}

// NewIDs returns a generator of IDs that no earlier glasses of the same session have used.
func NewIDs() func() string {
	random := make([]byte, 4)
	_, _ = rand.Read(random)
	prefix, n := "g"+hex.EncodeToString(random)+"-", 0
	return func() string { n++; return prefix + strconv.Itoa(n) }
}
