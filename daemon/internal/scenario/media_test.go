package scenario

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
)

// openPage is a browser session that records the frames sent to it.
type openPage struct {
	pageOnly
	sent []string
}

func (p *openPage) Control(_ context.Context, _ backend.Target, _, _ string, _ any, media []byte) (glasses.Result,
	error) {
	p.sent = append(p.sent, string(media))
	return glasses.Result{}, nil
}

// A scenario may name any file that the user can read. Only pictures and sounds are sent to the glasses, because the
// glasses may be a page of a backend on another machine.
func TestRun_SendsNoFilesButPicturesAndSounds(t *testing.T) {
	const secret = "-----BEGIN OPENSSH PRIVATE KEY-----\n"
	wave := "RIFF\x00\x00\x00\x00WAVEfmt "
	png := "\x89PNG\r\n\x1a\n...."
	for name, test := range map[string]struct {
		content    string
		microphone bool
		goes       bool
	}{
		"a secret as a picture": {content: secret},
		"a secret as a sound":   {content: secret, microphone: true},
		"a sound as a picture":  {content: wave},
		"an empty file":         {},
		"a PNG":                 {content: png, goes: true},
		"a JPEG":                {content: "\xff\xd8\xff\xe0....", goes: true},
		"a WAV":                 {content: wave, microphone: true, goes: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(t.TempDir(), "id")
			if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			step := scenario.Step{Camera: &file}
			if test.microphone {
				step = scenario.Step{Microphone: &file}
			}
			s := scenario.Scenario{Name: "s", Steps: []scenario.Step{step}}
			data, _ := s.Encode()
			if err := writeFile(t.Context(), ours, dir, ".", "s.json", data); err != nil {
				t.Fatal(err)
			}
			p := &openPage{pageOnly: pageOnly{rows: rows(glasses.Event{Type: glasses.RowAppAttached,
				Sender: glasses.SenderService, Kind: glasses.KindEvent})}}
			report, err := New(p).Run(t.Context(), Request{Files: ours, SessionID: "ses_abcdefgh",
				Path: filepath.Join(dir, "s.json")})
			if err != nil {
				t.Fatal(err)
			}
			if sent := len(p.sent) == 1 && p.sent[0] == test.content; sent != test.goes || !test.goes && len(p.sent) > 0 {
				t.Errorf("sent %q, %+v", p.sent, report.Steps)
			}
		})
	}
}
