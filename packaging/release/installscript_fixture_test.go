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

// installFixture serves and installs a release of small programs.
type installFixture struct {
	t      *testing.T
	shell  []string // the interpreter of install.sh
	dist   string   // directory of the served files
	url    string
	key    minisign.PrivateKey
	public string
	prefix string
	home   string
	path   string
	env    []string
}

// sharedLinks lists links that install.sh creates below PREFIX/share.
var sharedLinks = []string{
	"man/man1/servicectl.1", "bash-completion/completions/servicectl", "zsh/site-functions/_servicectl",
}

// installShells lists the interpreters that install.sh must support.
var installShells = [][]string{{"dash"}, {"bash", "--posix"}, {"busybox", "sh"}}

func newInstallFixture(t *testing.T, shell ...string) *installFixture {
	t.Helper()
	require(t, map[string]string{shell[0]: shell[0], "curl": "curl", "minisign": "minisign"})
	f := &installFixture{
		t: t, shell: shell, dist: t.TempDir(), key: signingKey(t, 7), home: t.TempDir(), path: os.Getenv("PATH"),
	}
	f.prefix = filepath.Join(t.TempDir(), "it's a \"prefix\" with $paces")
	f.public = publicKeyLine(f.key)
	server := httptest.NewServer(http.FileServer(http.Dir(f.dist)))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func signingKey(t *testing.T, seed byte) minisign.PrivateKey {
	t.Helper()
	_, private, err := minisign.GenerateKey(rand.NewChaCha8([32]byte{seed}))
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// publicKeyLine returns the second line of the public key file, which is the argument of minisign -P.
func publicKeyLine(key minisign.PrivateKey) string {
	text, _ := key.Public().(minisign.PublicKey).MarshalText()
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// release replaces the content of dist by a version with its checksums, signature and install.sh.
func (f *installFixture) release(version string) {
	f.t.Helper()
	old, err := filepath.Glob(filepath.Join(f.dist, "*"))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, file := range old {
		f.must(os.Remove(file))
	}
	f.write(f.archive(version), smallArchive(f.t, version))
	f.sign()
	script, err := stampInstallScript(version, f.url, f.public)
	f.must(err)
	f.write("install.sh", []byte(script))
}

func (f *installFixture) archive(version string) string {
	return "service-" + version + "-" + runtime.GOOS + "-" + runtime.GOARCH + ".tar.gz"
}

// sign writes SHA256SUMS for the files in dist, and its signature.
func (f *installFixture) sign() {
	f.t.Helper()
	archives, err := filepath.Glob(filepath.Join(f.dist, "*.tar.gz"))
	f.must(err)
	var sums bytes.Buffer
	for _, file := range archives {
		data, err := os.ReadFile(file)
		f.must(err)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), filepath.Base(file))
	}
	f.write("SHA256SUMS", sums.Bytes())
	f.write("SHA256SUMS.minisig", minisign.Sign(f.key, sums.Bytes()))
}

func (f *installFixture) write(name string, data []byte) {
	f.t.Helper()
	f.must(os.WriteFile(filepath.Join(f.dist, name), data, 0o644))
}

func (f *installFixture) read(name string) []byte {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dist, name))
	f.must(err)
	return data
}

func (f *installFixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// command returns a command that runs install.sh from dist.
func (f *installFixture) command(args ...string) *exec.Cmd {
	args = append(append(slices.Clone(f.shell[1:]), filepath.Join(f.dist, "install.sh")), args...)
	cmd := exec.CommandContext(f.t.Context(), f.shell[0], args...)
	cmd.Env = append([]string{"PATH=" + f.path, "HOME=" + f.home, "LC_ALL=C"}, f.env...)
	return cmd
}

// run runs install.sh with the fixture's prefix and returns its output.
func (f *installFixture) run(args ...string) (string, error) {
	out, err := f.command(append([]string{"--prefix", f.prefix}, args...)...).CombinedOutput()
	return string(out), err
}

// install runs install.sh, which must succeed.
func (f *installFixture) install(args ...string) string {
	f.t.Helper()
	out, err := f.run(args...)
	if err != nil {
		f.t.Fatalf("install.sh: %v\n%s", err, out)
	}
	return out
}

// refuses runs install.sh, which must fail with a text, leave the version in use unchanged, and leave no remains.
func (f *installFixture) refuses(version, text string, args ...string) {
	f.t.Helper()
	out, err := f.run(args...)
	if err == nil || !strings.Contains(out, text) || !strings.Contains(out, "Next: ") {
		f.t.Errorf("install.sh ended with %v instead of a failure with %q and a next step:\n%s", err, text, out)
	}
	f.works(version)
	f.isTidy()
}

// works fails unless both programs run and have the given version.
func (f *installFixture) works(version string) {
	f.t.Helper()
	for _, program := range []string{"servicectl", "service-mcp"} {
		out, err := exec.CommandContext(f.t.Context(), filepath.Join(f.prefix, "bin", program), "version").CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != program+" "+version {
			f.t.Errorf("%s says %q, %v; want version %s", program, got, err, version)
		}
	}
}

// isTidy fails if an installation left temporary files.
func (f *installFixture) isTidy() {
	f.t.Helper()
	left, _ := filepath.Glob(filepath.Join(f.prefix, "lib/service/.install.*"))
	if len(left) > 0 {
		f.t.Errorf("left behind: %q", left)
	}
}

// versions returns the versions that are still installed.
func (f *installFixture) versions() []string {
	f.t.Helper()
	files, err := filepath.Glob(filepath.Join(f.prefix, "lib/service/[0-9]*"))
	f.must(err)
	for i, file := range files {
		files[i] = filepath.Base(file)
	}
	return files
}

// smallLink is the link to serviced in the archive of smallArchive.
const smallLink = "bin/service-plugin-localsim"

// smallArchive returns an archive in the form of a real one. Its programs are scripts that print their name and
// version. Its filler does not compress, so that unpacking takes a moment.
func smallArchive(t *testing.T, version string) []byte {
	t.Helper()
	filler := make([]byte, 2<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(filler)
	files := map[string]string{
		"LICENSE": "text", "man/servicectl.1": ".TH", "completions/servicectl.bash": "#", "completions/_servicectl": "#",
		"bin/plugins.sha256": string(filler),
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
	link := &tar.Header{Typeflag: tar.TypeSymlink, Name: folder + "/" + smallLink, Linkname: "serviced", Mode: 0o777}
	if err := w.WriteHeader(link); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
