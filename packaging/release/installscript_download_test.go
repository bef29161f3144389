package main

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// useWget hides curl and minisign from install.sh, and provides a wget.
func useWget(t *testing.T, f *installFixture, wget string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{
		"tar", "gzip", "readlink", "find", "sort", wget, "sha256sum", "uname", "cut", "sed", "mv", "ln", "rm",
		"mkdir", "basename", "dirname", "cat", "sh", "rmdir",
	} {
		path, err := exec.LookPath(name)
		if err != nil {
			skip(t, name+" is missing: apt-get install "+name)
		}
		f.must(os.Symlink(path, filepath.Join(dir, strings.Replace(name, "busybox", "wget", 1))))
	}
	shell, err := exec.LookPath(f.shell[0])
	f.must(err)
	f.shell = append([]string{shell}, f.shell[1:]...)
	f.path = dir
}

func wgetDownloads(t *testing.T, f *installFixture) {
	useWget(t, f, "wget")
	out := f.install()
	f.works("1.0.0")
	if !strings.Contains(out, "Not checked: the signature, because minisign is not installed") {
		t.Errorf("install.sh does not say that nothing checked the signature:\n%s", out)
	}
}

// confinedCurl acts as the curl that Ubuntu offers as a snap, which can write neither to hidden folders nor to /tmp.
const confinedCurl = `#!/bin/sh
for word; do
	case $word in /*) echo "curl: (23) client returned ERROR on write" >&2; exit 23 ;; esac
done
exec %s "$@"
`

func confinedCurlDownloads(t *testing.T, f *installFixture) {
	curl, err := exec.LookPath("curl")
	f.must(err)
	dir := filepath.Join(t.TempDir(), "snap", "bin")
	f.must(os.MkdirAll(dir, 0o755))
	f.must(os.WriteFile(filepath.Join(dir, "curl"), fmt.Appendf(nil, confinedCurl, curl), 0o755))
	f.path = dir + ":" + f.path
	f.install()
	f.works("1.0.0")
	f.must(os.Remove(filepath.Join(f.dist, f.archive("1.0.0"))))
	f.must(os.RemoveAll(f.prefix))
	if out, err := f.run(); err == nil || !strings.Contains(out, "cannot download") {
		t.Errorf("install.sh ended with %v without an archive:\n%s", err, out)
	}
}

// serveHTTPS also serves dist over https below /release, and redirects to it below other paths. It returns the URL.
func serveHTTPS(t *testing.T, f *installFixture) string {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewUnstartedServer(mux)
	mux.Handle("/release/", http.StripPrefix("/release", http.FileServer(http.Dir(f.dist))))
	for path, target := range map[string]func() string{
		"/to-path": func() string { return "/release" }, "/to-https": func() string { return server.URL + "/to-path" },
		"/to-http": func() string { return f.url }, "/to-itself": func() string { return "/to-itself" },
	} {
		mux.HandleFunc(path+"/", func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, target()+strings.TrimPrefix(r.URL.Path, path), http.StatusFound)
		})
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	dir := t.TempDir()
	certificate := filepath.Join(dir, "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	f.must(os.WriteFile(certificate, pem.EncodeToMemory(block), 0o644))
	settings := filepath.Join(dir, "wgetrc")
	f.must(os.WriteFile(settings, []byte("ca_certificate = "+certificate+"\n"), 0o644))
	f.env = []string{"CURL_CA_BUNDLE=" + certificate, "WGETRC=" + settings}
	return server.URL
}

// releaseAt makes install.sh download 1.0.0 from a URL.
func (f *installFixture) releaseAt(url string) {
	f.t.Helper()
	script, err := stampInstallScript("1.0.0", url, f.public)
	f.must(err)
	f.write("install.sh", []byte(script))
}

// redirectsStayEncrypted checks, with curl and with wget, that redirects from https to https are followed and
// redirects to http are refused.
func redirectsStayEncrypted(t *testing.T, f *installFixture) {
	url := serveHTTPS(t, f)
	for _, program := range []string{"curl", "wget"} {
		if program == "wget" {
			useWget(t, f, "wget")
		}
		f.must(os.RemoveAll(f.prefix))
		for _, path := range []string{"/to-http", "/to-itself"} {
			f.releaseAt(url + path)
			out, err := f.run()
			if err == nil || !strings.Contains(out, "Next: ") {
				t.Errorf("%s downloads from %s: %v\n%s", program, path, err, out)
			}
			if _, err := os.Lstat(filepath.Join(f.prefix, "bin", "servicectl")); err == nil {
				t.Errorf("install.sh installs what %s downloads from %s", program, path)
			}
		}
		for _, path := range []string{"/release", "/to-path", "/to-https"} {
			f.must(os.RemoveAll(f.prefix))
			f.releaseAt(url + path)
			f.install()
			f.works("1.0.0")
		}
	}
}

// otherWgetNeedsSignature checks that install.sh does not download with a wget that cannot be limited to https and
// does not check certificates.
func otherWgetNeedsSignature(t *testing.T, f *installFixture) {
	f.releaseAt(serveHTTPS(t, f) + "/release")
	useWget(t, f, "busybox")
	out, err := f.run()
	if err == nil || !strings.Contains(out, "cannot download securely") || !strings.Contains(out, "install curl") {
		t.Errorf("install.sh ended with %v:\n%s", err, out)
	}
}
