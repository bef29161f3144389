package identity

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/statefile"
)

var quiet = slog.New(slog.DiscardHandler)

func TestFirstStartsAtOnceShareOneID(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	ids := make([]string, 20)
	for i := range ids {
		all.Go(func() {
			install, err := Open(dir, time.Now(), quiet)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = install.ID()
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] || !validID(id) {
			t.Fatal(ids)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Error("left:", entries)
	}
}

func TestOtherFieldsSurvive(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	const text = `{"installId":"inst_abcd","noticeShownAt":"2026-01-01T00:00:00Z","future":1}`
	_ = os.WriteFile(path, []byte(text), 0o600)
	install, err := Open(dir, time.Now(), quiet)
	if err != nil || install.ID() != "inst_abcd" {
		t.Fatal(install, err)
	}
	if data, _ := os.ReadFile(path); string(data) != text {
		t.Errorf("the file changed to %s", data)
	}
}

// The notice and the last version are stored next to fields of other programs, are visible to other processes, and are
// never written to another install's file.
func TestWhatWasSeenIsRemembered(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	_ = os.WriteFile(path, []byte(`{"installId":"inst_abcd","future":1}`), 0o600)
	install, err := Open(dir, time.Now(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(dir, time.Now(), quiet)
	if err != nil || !other.NoticeShownAt(Agents).IsZero() || other.LastVersion() != "" {
		t.Fatal(other.NoticeShownAt(Agents), other.LastVersion(), err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := install.SetNoticeShownAt(Agents, at); err != nil {
		t.Fatal(err)
	}
	if err := install.SetLastVersion("1.2.3"); err != nil {
		t.Fatal(err)
	}
	if !other.NoticeShownAt(Agents).Equal(at) || !other.NoticeShownAt(Terminal).IsZero() ||
		other.LastVersion() != "1.2.3" {
		t.Error(other.NoticeShownAt(Agents), other.NoticeShownAt(Terminal), other.LastVersion())
	}
	if data, _ := os.ReadFile(path); !strings.Contains(string(data), `"future": 1`) {
		t.Errorf("the file changed to %s; want the unknown field kept", data)
	}
	const theirs = `{"installId":"inst_other"}`
	for _, text := range []string{theirs, `{"installId":"inst_abcd","noticeShownAt":7}`, "{"} {
		_ = os.WriteFile(path, []byte(text), 0o600)
		fresh := &Install{path: path, id: "inst_abcd"}
		if !fresh.NoticeShownAt(Agents).IsZero() || fresh.LastVersion() != "" {
			t.Errorf("the invalid fields %s were accepted", text)
		}
	}
	_ = os.WriteFile(path, []byte(theirs), 0o600)
	if err := install.SetLastVersion("2"); err == nil {
		t.Error("SetLastVersion changed the file of another install")
	}
}

// Two processes that write concurrently do not lose each other's changes.
func TestTwoProcessesRemember(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		one, err := Open(dir, time.Now(), quiet)
		if err != nil {
			t.Fatal(err)
		}
		other, err := Open(dir, time.Now(), quiet)
		if err != nil {
			t.Fatal(err)
		}
		at, version := time.Unix(int64(1000+i), 0), fmt.Sprintf("1.0.%d", i)
		var both sync.WaitGroup
		for _, change := range []func() error{
			func() error { return one.SetNoticeShownAt(Agents, at) },
			func() error { return other.SetLastVersion(version) },
		} {
			both.Go(func() {
				err := change()
				for errors.Is(err, statefile.ErrLocked) { // the disk may be slow
					err = change()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		fresh, err := Open(dir, time.Now(), quiet)
		if err != nil || !fresh.NoticeShownAt(Agents).Equal(at) || fresh.LastVersion() != version {
			t.Fatalf("round %d: notice %v, version %q, error %v; a change was lost",
				i, fresh.NoticeShownAt(Agents), fresh.LastVersion(), err)
		}
	}
}

func TestCorruptFileIsKeptAside(t *testing.T) {
	for _, text := range []string{"", "{", "null", `{"installId":"x"}`, `{"installId":"inst_a\r\nb"}`,
		strings.Repeat("x", maxFile+1)} {
		dir := t.TempDir()
		_ = os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600)
		install, err := Open(dir, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), quiet)
		if err != nil || !validID(install.ID()) {
			t.Fatal(install, err)
		}
		kept, err := os.ReadFile(filepath.Join(dir, FileName+".corrupt-20260102T030405Z"))
		if err != nil || string(kept) != text {
			t.Errorf("kept %q, %v", kept, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"installId":"inst_abcd","noticeShownAt":"x"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if id, err := parse(data); err == nil && !validID(id) {
			t.Errorf("took %q", id)
		}
	})
}
