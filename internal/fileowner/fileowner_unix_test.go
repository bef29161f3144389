//go:build unix

package fileowner

import (
	"os"
	"path/filepath"
	"testing"
)

func TestIsPrivateGroupIn(t *testing.T) {
	dir := t.TempDir()
	passwd, group := filepath.Join(dir, "passwd"), filepath.Join(dir, "group")
	for file, text := range map[string]string{
		passwd: "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n" +
			"bob:x:1001:1002::/home/bob:/bin/sh\n",
		group: "root:x:0:\nada:x:1000:\nbob:x:1002:\nstaff:x:50:\ndevelopers:x:60:ada,bob\nalone:x:70:ada\n" +
			"ours:x:80:ada,root\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for gid, private := range map[int]bool{1000: true, 1002: false, 50: true, 60: false, 70: true, 80: true, 4711: false} {
		if got := isPrivateGroupIn(passwd, group, gid, 1000); got != private {
			t.Errorf("group %d: %t", gid, got)
		}
	}
	if !isPrivateGroupIn(passwd, group, 5000, 5000) || !isPrivateGroupIn("/nonexistent", "/nonexistent", 5000, 5000) {
		t.Error("without an entry in the tables, a group with the user's number must count as private")
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{"/a/b-1.0": "/a/b-1.0", "/a b": "'/a b'", "it's": `'it'\''s'`, "": "''",
		"/a;rm": "'/a;rm'"} {
		if got := shellQuote(in); got != want {
			t.Errorf("%q: %s", in, got)
		}
	}
}
