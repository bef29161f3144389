//go:build unix

package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
)

// A step may name a file that is not regular, or an endless one. The run reports it, does not hang, and does not
// exhaust memory.
func TestStepsThatNameNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "large"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "large"), max(session.MaxUpload, scenario.MaxFile)+1); err != nil {
		t.Fatal(err)
	}
	p := &pageOnly{rows: rows(glasses.Event{Type: glasses.RowAppAttached, Sender: glasses.SenderService,
		Kind: glasses.KindEvent})}
	for file, want := range map[string]string{"pipe": "not a regular file", "large": "over the limit of"} {
		s := scenario.Scenario{Name: "s", Steps: []scenario.Step{{Camera: &file}}}
		data, _ := s.Encode()
		if err := writeFile(t.Context(), ours, dir, ".", "s.json", data); err != nil {
			t.Fatal(err)
		}
		report, err := New(p).Run(t.Context(), Request{Files: ours, SessionID: "ses_abcdefgh",
			Path: filepath.Join(dir, "s.json")})
		if err != nil || !strings.Contains(report.Steps[0].Message, want) {
			t.Errorf("%s: %+v, %v", file, report.Steps, err)
		}
		if _, err := Load(t.Context(), ours, filepath.Join(dir, file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s as a scenario: %v, want a refusal", file, err)
		}
	}
}
