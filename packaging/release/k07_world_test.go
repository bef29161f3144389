package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
)

// installWorld serves a release of small programs, and installs it.
type installWorld struct {
	t      *testing.T
	shell  []string // the interpreter of install.sh
	dist   string   // the files that are served
	url    string
	key    minisign.PrivateKey
	public string
	prefix string
	home   string
	path   string
	env    []string
}

// sharedLinks are links that install.sh makes below PREFIX/share.
var sharedLinks = []string{
	"man/man1/servicectl.1", "bash-completion/completions/servicectl", "zsh/site-functions/_servicectl",
}

// installShells are the interpreters under which install.sh must work.
var installShells = [][]string{{"dash"}, {"bash", "--posix"}, {"busybox", "sh"}}

func newInstallWorld(t *testing.T, shell ...string) *installWorld {
	t.Helper()
	require(t, map[string]string{shell[0]: shell[0], "curl": "curl", "minisign": "minisign"})
	w := &installWorld{
		t: t, shell: shell, dist: t.TempDir(), key: signingKey(t, 7), home: t.TempDir(), path: os.Getenv("PATH"),
	}
	w.prefix = filepath.Join(t.TempDir(), "it's a \"prefix\" with $paces")
	w.public = publicKeyLine(w.key)
	server := httptest.NewServer(http.FileServer(http.Dir(w.dist)))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func signingKey(t *testing.T, seed byte) minisign.PrivateKey {
	t.Helper()
	_, private, err := minisign.GenerateKey(rand.NewChaCha8([32]byte{seed}))
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// publicKeyLine returns the second line of the public key's file, which minisign -P takes.
func publicKeyLine(key minisign.PrivateKey) string {
	text, _ := key.Public().(minisign.PublicKey).MarshalText()
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// release puts a version with its checksums, signature and install.sh into dist, which then has only that one.
func (w *installWorld) release(version string) {
	w.t.Helper()
	old, err := filepath.Glob(filepath.Join(w.dist, "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, file := range old {
		w.must(os.Remove(file))
	}
	w.write(w.archive(version), smallArchive(w.t, version))
	w.sign()
	script, err := stampInstallScript(version, w.url, w.public)
	w.must(err)
	w.write("install.sh", []byte(script))
}

func (w *installWorld) archive(version string) string {
	return "service-" + version + "-" + runtime.GOOS + "-" + runtime.GOARCH + ".tar.gz"
}

// sign writes SHA256SUMS of what is in dist, and its signature.
func (w *installWorld) sign() {
	w.t.Helper()
	archives, err := filepath.Glob(filepath.Join(w.dist, "*.tar.gz"))
	w.must(err)
	var sums bytes.Buffer
	for _, file := range archives {
		data, err := os.ReadFile(file)
		w.must(err)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), filepath.Base(file))
	}
	w.write("SHA256SUMS", sums.Bytes())
	w.write("SHA256SUMS.minisig", minisign.Sign(w.key, sums.Bytes()))
}

func (w *installWorld) write(name string, data []byte) {
	w.t.Helper()
	w.must(os.WriteFile(filepath.Join(w.dist, name), data, 0o644))
}

func (w *installWorld) read(name string) []byte {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dist, name))
	w.must(err)
	return data
}

func (w *installWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// command returns the command that runs install.sh of the release in dist.
func (w *installWorld) command(args ...string) *exec.Cmd {
	args = append(append(slices.Clone(w.shell[1:]), filepath.Join(w.dist, "install.sh")), args...)
	cmd := exec.CommandContext(w.t.Context(), w.shell[0], args...)
	cmd.Env = append([]string{"PATH=" + w.path, "HOME=" + w.home, "LC_ALL=C"}, w.env...)
	return cmd
}

// run runs install.sh with the world's prefix and returns what it prints.
func (w *installWorld) run(args ...string) (string, error) {
	out, err := w.command(append([]string{"--prefix", w.prefix}, args...)...).CombinedOutput()
	return string(out), err
}

// install runs install.sh, which must succeed.
func (w *installWorld) install(args ...string) string {
	w.t.Helper()
	out, err := w.run(args...)
	if err != nil {
		w.t.Fatalf("install.sh: %v\n%s", err, out)
	}
	return out
}

// refuses runs install.sh, which must fail with a text and leave the version in use as it is, without remains.
func (w *installWorld) refuses(version, text string, args ...string) {
	w.t.Helper()
	out, err := w.run(args...)
	if err == nil || !strings.Contains(out, text) || !strings.Contains(out, "Next: ") {
		w.t.Errorf("install.sh ended with %v instead of a failure with %q and a next step:\n%s", err, text, out)
	}
	w.works(version)
	w.isTidy()
}

// works fails unless both programs run and are of a version.
func (w *installWorld) works(version string) {
	w.t.Helper()
	for _, program := range []string{"servicectl", "service-mcp"} {
		out, err := exec.CommandContext(w.t.Context(), filepath.Join(w.prefix, "bin", program), "version").CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != program+" "+version {
			w.t.Errorf("%s says %q, %v; want version %s", program, got, err, version)
		}
	}
}

// isTidy fails if an installation left temporary files.
func (w *installWorld) isTidy() {
	w.t.Helper()
	left, _ := filepath.Glob(filepath.Join(w.prefix, "lib/service/.install.*"))
	if len(left) > 0 {
		w.t.Errorf("left behind: %q", left)
	}
}

// versions returns the versions that are kept.
func (w *installWorld) versions() []string {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.prefix, "lib/service/[0-9]*"))
	w.must(err)
	for i, file := range files {
		files[i] = filepath.Base(file)
	}
	return files
}

// smallArchive is an archive in the form of a real one. Its programs are scripts that print their name and version, and
// its filler, which no one can compress, makes unpacking take a moment.
func smallArchive(t *testing.T, version string) []byte {
	t.Helper()
	filler := make([]byte, 2<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(filler)
	files := map[string]string{
		"LICENSE": "text", "man/servicectl.1": ".TH", "completions/servicectl.bash": "#", "completions/_servicectl": "#",
		"man/service-backend.1": ".TH", "man/service-backend-serve.1": ".TH", "completions/service-backend.bash": "#",
		"completions/_service-backend": "#", "bin/plugins.sha256": string(filler),
	}
	for _, program := range []string{"servicectl", "service-mcp", "serviced"} {
		files["bin/"+program] = "#!/bin/sh\necho " + program + " " + version + "\n"
	}
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	folder := strings.TrimSuffix("service-"+version+"-"+runtime.GOOS+"-"+runtime.GOARCH, "/")
	for name, text := range files {
		mode := int64(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		header := &tar.Header{Name: folder + "/" + name, Mode: mode, Size: int64(len(text)), ModTime: time.Unix(1e9, 0)}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
