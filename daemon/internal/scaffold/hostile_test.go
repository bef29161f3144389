package scaffold

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	contract "github.com/service-dev/service/internal/clientio"
)

// inspectSoon inspects a folder for which an unlimited inspection would take minutes with the race detector.
func inspectSoon(t *testing.T, files clientio.Files, root string) Inspection {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	start := time.Now()
	in, err := Inspect(ctx, files, root)
	if err != nil {
		t.Fatalf("inspection failed with %v after %v", err, time.Since(start))
	}
	return in
}

// For a file full of unclosed calls, the time to read it and the number of recorded phrases are limited by the file's
// length.
func TestInspect_CallsWithoutAnEnd(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]string{"a quote": "announce(\"a\n", "strings": `announce("a",`,
		"brackets": "announce(("} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			text := "glasses\n" + strings.Repeat(call, maxRead/4/len(call))
			write(t, filepath.Join(root, "a.py"), []byte(text))
			if in := inspectSoon(t, ours, root); len(in.Phrases) > maxUses || in.FilesRead != 1 {
				t.Errorf("%d phrases, %d files read; want at most maxUses and 1", len(in.Phrases), in.FilesRead)
			}
		})
	}
}

func TestInspect_PhrasesKeepTheirLines(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "a.py"),
		[]byte("glasses\nglasses.announce(['one',\n'two'])\n\nglasses.announce([\n\"three\"])\n"))
	in := inspectSoon(t, ours, root)
	want := []Use{{"one", "a.py", 2}, {"two", "a.py", 3}, {"three", "a.py", 6}}
	if fmt.Sprint(in.Phrases) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", in.Phrases, want)
	}
}

// A file that a manifest lists many times is read only once.
func TestInspect_ManifestOfManyFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, ManifestName),
		[]byte(`{"manifest":1,"modules":[{"files":[{"name":"a"}`+strings.Repeat(`,{"name":"a"}`, 70000)+`]}]}`))
	for name, size := range map[string]int{"large": maxRead, "empty": 0} {
		write(t, filepath.Join(root, "a"), make([]byte, size))
		if in := inspectSoon(t, ours, root); !in.Truncated || in.FilesRead > maxReads || size*in.FilesRead > 2*maxBytes {
			t.Errorf("%s: %d files read, truncated %v; want a bounded number and true", name, in.FilesRead, in.Truncated)
		}
	}
}

// endless is a client in which each folder contains another folder.
type endless struct{ asked int }

func (e *endless) Do(ctx context.Context, r contract.Request) (contract.Response, error) {
	if e.asked++; ctx.Err() != nil {
		return contract.Response{}, ctx.Err()
	}
	if r.Op != contract.List {
		return contract.Response{Code: contract.CodeNotExist}, nil
	}
	var answer contract.Response
	for i := range 100 {
		answer.Entries = append(answer.Entries, contract.Entry{Name: contract.Path(fmt.Sprint(i)), Kind: contract.KindDir})
	}
	return answer, nil
}

func TestInspect_FoldersWithoutAnEnd(t *testing.T) {
	t.Parallel()
	e := &endless{}
	if in := inspectSoon(t, clientio.FilesOf(caller.Caller{IO: e}), "/"); !in.Truncated || e.asked > 2*maxFolders {
		t.Errorf("asked %d times, truncated %v; want a bounded number and true", e.asked, in.Truncated)
	}
}
